"""Arabic and Chinese numerals to values: 1.5万, 15,000 and 一万五 are all 15000.

Of our own: cn2an 0.5 reads formal numerals only (see lm_eval_tasks/qilin/README.md for the measurement).
"""

from __future__ import annotations

import math
import re

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_STEPS = {"十": 10, "百": 100, "千": 1000}
_GROUPS = {"万": 10_000, "亿": 100_000_000}
#: Behind Arabic digits.
MULTIPLIERS = {"百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000, "k": 1000, "w": 10_000}
_MOST_CHARS = 20

ARABIC = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
CHINESE = "[零〇一二两三四五六七八九十百千万亿]+"
_ARABIC = re.compile(rf"({ARABIC})([百千万亿kw]?)", re.ASCII)


def chinese_value(text: str) -> float | None:
    """The value of a Chinese numeral (一万五 is 15000, 三千八 3800, 二〇二三 2023); None for what is none."""
    if not text or len(text) > _MOST_CHARS or text[0] in "百千万亿":
        return None
    if all(character in _DIGITS for character in text):
        return float("".join(str(_DIGITS[character]) for character in text)) if len(text) != 2 else None
    total = section = digit = 0
    last, zero = 1, False
    for character in text:
        if character in _DIGITS:
            digit, zero = _DIGITS[character], zero or character in "零〇"
            continue
        if character in _STEPS:
            last = _STEPS[character]
            section += (digit or (1 if last == 10 else 0)) * last
        else:
            last = _GROUPS[character]
            total, section = total + (section + digit) * last, 0
        digit, zero = 0, False
    # The last digit after 百, 千, 万 is of the next step down, unless a zero stands between.
    return float(total + section + digit * (last // 10 if last > 10 and not zero else 1))


def value_of(text: str) -> float | None:
    """The value of an Arabic (with its multiplier) or Chinese numeral; None for what is none or is not finite."""
    match = _ARABIC.fullmatch(text)
    if match is None:
        return chinese_value(text)
    value = float(match[1].replace(",", "")) * MULTIPLIERS.get(match[2], 1)
    return value if math.isfinite(value) else None


def shown(value: float) -> str:
    """`15000`, `1.5`: without trailing zeros."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
