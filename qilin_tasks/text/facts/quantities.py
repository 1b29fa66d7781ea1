"""Numbers, dates, times, ranges and codes of a text, each in one canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qilin_tasks.text.facts.numerals import ARABIC, CHINESE, shown, value_of
from qilin_tasks.text.facts.units import MEASURED, UNIT, UNITS

_NUMBER = rf"(?:{ARABIC}(?:[百千万亿]|[kw](?![a-z]))?|{CHINESE})"
_ABOUT = "[多几余来]?"
_HALF_UNIT = "个?小时|个月|斤|天|年|公里|杯|碗|瓶|盒"
_DAY = "上午|早上|早晨|凌晨|清晨|中午|下午|傍晚|晚上|今晚|明晚|当晚"
_NO_TIME = "建议|原因|注意|感受|心得|理由|要求|经验|意见|好处"
_SMALL = r"(?:\d{1,2}|[零一二两三四五六七八九十]{1,3})"

_QUANTITY = (
    r"(?P<quantity>(?:(?P<currency>[¥$])\s?)?(?P<below_zero>零下|(?<![\da-z~])-)?"
    rf"(?P<number>{_NUMBER}){_ABOUT}\s?(?P<unit>%|{UNIT})?)"
)
_FACT = re.compile(
    rf"""
    (?P<skip>(?:周|星期|礼拜)[一二三四五六日天](?![次个])|双十[一二]|双11|[五十]一(?=假|长假|黄金|期间|放)|万一|一分钱一分货)
    |(?P<code>(?<![a-z0-9])(?:[a-z]+\d+[a-z0-9]*|\d[a-z]\d{{3,5}})(?![a-z0-9]))
    |(?P<ymd>(?<!\d)(?P<y1>\d{{4}})[-/.](?P<m1>\d{{1,2}})[-/.](?P<d1>\d{{1,2}})(?!\d))
    |(?P<cymd>(?P<y2>(?<!\d)\d{{4}}|[一二][零〇一二三四五六七八九]{{3}})年
        (?:的?(?P<m2>{_SMALL})月份?(?:(?P<d2>{_SMALL}|[一二三]?十[一二三四五六七八九]?)[日号])?)?)
    |(?P<md>(?<!\d)(?P<m3>{_SMALL})月(?!饼)份?(?:(?P<d3>\d{{1,2}}|[一二三]?十?[一二三四五六七八九十])[日号]?)?)
    |(?P<dot>(?<![\d.])(?P<m4>1[0-2]|[1-9])\.(?P<d4>[12]\d|3[01]|[1-9])(?![\d.])(?=号|日|跨|晚|出发|返程|到期|上线|开))
    |(?P<clock>(?P<day1>{_DAY})?(?<!\d)(?P<h1>\d{{1,2}}):(?P<min1>\d{{2}})(?![\d.:])(?:\s*(?P<ap1>am|pm)(?![a-z]))?)
    |(?P<ampm>(?<!\d)(?P<h3>\d{{1,2}})\s*(?P<ap3>am|pm)(?![a-z]))
    |(?P<oclock>(?P<day2>{_DAY})?(?P<h2>(?<![\d.])\d{{1,2}}|[零两二三四五六七八九十]{{1,3}}|(?<=[上午里晨晚])一)
        点(?!{_NO_TIME})(?:(?P<half>半)|(?P<min2>{_SMALL})分|钟)?)
    |百分之(?P<cpercent>{_NUMBER})
    |(?P<fraction>(?P<below>{_NUMBER})分之(?P<above>{_NUMBER}))
    |(?P<discount>(?P<off>\d(?:\.\d|\d)?|[一二三四五六七八九]{{1,2}})折)
    |第(?P<nth>{_NUMBER})(?:(?P<nthunit>{UNIT}))?
    |(?P<onehalf>(?P<whole>{_NUMBER})个半(?P<halfunit1>小时|月|钟头))
    |半(?P<halfunit2>{_HALF_UNIT})
    |(?P<adjacent>(?P<low>[一二两三四五六七八])(?P<high>[二三四五六七八九])(?P<step>[十百千万]?){_ABOUT}(?P<adjunit>{UNIT}))
    |(?P<range>(?<![从由\d.\-])(?P<sign>[¥$])?(?P<from>{_NUMBER})(?P<fromunit>%|{UNIT})?\s*(?:-|~|–|—|到|至)\s*[¥$]?(?P<to>{_NUMBER}){_ABOUT}
        (?P<tounit>%|{UNIT})?(?![\d:]))
    |{_QUANTITY}
    """,
    re.VERBOSE | re.ASCII,
)
#: What any form of _FACT begins with: looked for first, as the whole pattern is slow to fail at every character.
_START = re.compile(
    rf"[\d零〇一二两三四五六七八九十百千万亿第半周¥$-]|星期|礼拜|双(?:十|11)|(?<![a-z0-9])[a-z]|{_DAY}", re.ASCII
)
_QUANTITY_ALONE = re.compile(_QUANTITY, re.ASCII)
_CURRENCY = {"¥": "元", "$": "usd"}


def quantities(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, canonical form) of each fact of a text in comparing form (see extract.prepare), in order.

    Forms: `120元`, `3~5天`, `50%`, `8.5折`, `1/3`, `第3天`, `date:2024-5-1`, `time:9:30`, `spf50`.
    """
    at = 0
    while (start := _START.search(text, at)) is not None:
        match = _FACT.match(text, start.start())
        if match is None:
            at = start.start() + 1
            continue
        forms = _forms(match)
        if forms is None and match["range"]:
            # No range after all (`1:1`, `130到120`): its first number may still be a fact.
            match = _QUANTITY_ALONE.match(text, match.start()) or match
            forms = [form] if "range" not in match.groupdict() and (form := _quantity(match)) else None
        at = max(match.end(), match.start() + 1)
        yield from ((match.start(), match.end(), form) for form in forms or ())


def _forms(match: re.Match[str]) -> list[str] | None:
    for name, read in _READERS.items():
        if match[name]:
            found = read(match)
            return None if found is None else [found] if found else []
    return None


def _small(text: str | None) -> int | None:
    if not text:
        return None
    value = value_of(text)
    return None if value is None else int(value)


def _date(year: str | None, month: str | None, day: str | None) -> str | None:
    parts = [_small(part) for part in (year, month, day) if part]
    if not parts or None in parts or (month and not 1 <= (_small(month) or 0) <= 12):
        return None
    return "date:" + "-".join(str(part) for part in parts)


def _time(match: re.Match[str], n: str) -> str | None:
    hour = _small(match[f"h{n}"])
    if hour is None or hour > 24:
        return None
    day = match[f"day{n}"] if n != "3" else None
    noon = (match[f"ap{n}"] == "pm") if n != "2" else False
    if (noon or day in ("下午", "傍晚", "晚上", "今晚", "明晚", "当晚")) and hour < 12:
        hour += 12
    minute = 0 if n == "3" else 30 if n == "2" and match["half"] else _small(match[f"min{n}"]) or 0
    return f"time:{hour}:{minute:02d}"


def _amount(number: str, unit: str | None, *, negative: bool = False) -> str | None:
    value = value_of(number)
    if value is None:
        return None
    name = "%" if unit == "%" else UNITS[unit] if unit else ""
    if number == "一" and name not in MEASURED:
        return None
    if not number[0].isdigit() and not name and (len(number) < 2 or not set(number) & set("十百千万亿")):
        return None
    return ("-" if negative else "") + shown(value) + name


def _discount(text: str) -> str | None:
    digits = "".join(shown(value_of(c) or 0) if not c.isascii() else c for c in text)
    return f"{digits[0]}.{digits[1]}折" if len(digits) == 2 and "." not in digits else f"{digits}折"


def _range(match: re.Match[str]) -> str | None:
    first, second = match["from"], match["to"]
    unit = match["tounit"] or match["fromunit"]
    low, high = value_of(first), value_of(second)
    plain = first[-1].isdigit() and second[-1] in "百千万亿kw"
    if low is not None and plain and high is not None and low < 100:
        low *= high / (value_of(second[:-1]) or 1)
    if low is None or high is None or low >= high or first.startswith("0") or len(second) > 8:
        return None
    if not (first[0].isdigit() and second[0].isdigit()) and not (unit or set(first) & set("十百千万")):
        return None
    name = "%" if unit == "%" else UNITS[unit] if unit else _CURRENCY.get(match["sign"] or "", "")
    return f"{shown(low)}~{shown(high)}{name}"


def _adjacent(match: re.Match[str]) -> str | None:
    low, high = (value_of(match[side]) or 0 for side in ("low", "high"))
    step = {"": 1, "十": 10, "百": 100, "千": 1000, "万": 10_000}[match["step"]]
    return f"{shown(low * step)}~{shown(high * step)}{UNITS[match['adjunit']]}" if high == low + 1 else None


def _nth(match: re.Match[str]) -> str | None:
    value = value_of(match["nth"])
    unit = UNITS[match["nthunit"]] if match["nthunit"] else ""
    return "" if value is None or (match["nth"] == "一" and unit in ("次", "")) else f"第{shown(value)}{unit}"


def _half(match: re.Match[str], unit: str, whole: float) -> str:
    return shown(whole + 0.5) + {"月": "月", "钟头": "小时"}.get(unit, UNITS.get(unit, unit))


def _fraction(match: re.Match[str]) -> str | None:
    below, above = value_of(match["below"]), value_of(match["above"])
    return None if below is None or above is None else f"{shown(above)}/{shown(below)}"


def _quantity(match: re.Match[str]) -> str | None:
    unit = match["unit"]
    form = _amount(match["number"], unit, negative=bool(match["below_zero"]))
    return form + _CURRENCY[match["currency"]] if form and match["currency"] and not unit else form


_READERS = {
    "skip": lambda match: "",
    "code": lambda match: match["code"],
    "ymd": lambda match: _date(match["y1"], match["m1"], match["d1"]),
    "cymd": lambda match: _date("".join(shown(value_of(c) or 0) for c in match["y2"]), match["m2"], match["d2"]),
    "md": lambda match: _date(None, match["m3"], match["d3"]),
    "dot": lambda match: _date(None, match["m4"], match["d4"]),
    "clock": lambda match: _time(match, "1"),
    "ampm": lambda match: _time(match, "3"),
    "oclock": lambda match: _time(match, "2"),
    "fraction": _fraction,
    "cpercent": lambda match: _amount(match["cpercent"], "%"),
    "discount": lambda match: _discount(match["off"]),
    "nth": _nth,
    "onehalf": lambda match: _half(match, match["halfunit1"], value_of(match["whole"]) or 0),
    "halfunit2": lambda match: _half(match, match["halfunit2"], 0),
    "adjacent": _adjacent,
    "range": _range,
    "quantity": _quantity,
}
