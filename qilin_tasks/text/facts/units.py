"""Units and counters, each under one name."""

from __future__ import annotations

import re

_NAMES = {
    "元": "元 块钱 块 圆 人民币 rmb",
    "usd": "dollars dollar usd 美元 美金 刀",
    "kg": "kg 公斤 千克",
    "g": "g 克",
    "mg": "mg 毫克",
    "斤": "斤",
    "km": "km 公里 千米",
    "m": "m 米",
    "cm": "cm 厘米",
    "mm": "mm 毫米",
    "ml": "ml 毫升",
    "l": "l 升",
    "㎡": "m2 平方米 平米 平",
    "度": "°c 摄氏度 度",
    "小时": "个小时 小时 个钟头 个钟 hours hour h",
    "分钟": "分钟 minutes minute mins min",
    "秒": "秒钟 秒 seconds second",
    "天": "天 days day",
    "日": "日 号",
    "周": "个星期 星期 周 weeks week",
    "月": "个月 months month",
    "年": "年 years year",
    "晚": "晚",
    "岁": "岁",
    "毫安": "毫安时 毫安 mah",
    "大卡": "大卡 千卡 kcal",
    "楼": "楼 层",
    "号线": "号线",
    "人": "个人 人 位",
}
_COUNTERS = (
    "个 倍 次 杯 瓶 片 家 种 款 站 分 张 套 本 件 双 支 碗 份 盒 勺 遍 只 顿 条 包 袋 颗 粒 步 部 台 间 辆 道 场 页"
)

UNITS: dict[str, str] = {name: unit for unit, names in _NAMES.items() for name in names.split()}
UNITS |= {name: name for name in _COUNTERS.split()}

#: Units that 一 counts; before any other counter it is an article (一个, 一款).
MEASURED = frozenset(
    [
        "元",
        "usd",
        "kg",
        "g",
        "mg",
        "斤",
        "km",
        "m",
        "cm",
        "mm",
        "ml",
        "l",
        "㎡",
        "度",
        "小时",
        "分钟",
        "秒",
        "天",
        "周",
        "月",
        "年",
        "晚",
        "岁",
        "楼",
        "毫安",
        "大卡",
        "号线",
    ]
)


def _pattern(name: str) -> str:
    # A Latin unit ends where its word does.
    return re.escape(name) + (r"(?![a-z])" if name[-1].isascii() and name[-1].isalpha() else "")


#: Longest first, so that 个小时 is not 个.
UNIT = "|".join(_pattern(name) for name in sorted(UNITS, key=len, reverse=True))
