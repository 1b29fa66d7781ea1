"""A ranking in ASCII, by what Unicode says of a character: digits, arrows, brackets, separators of any script."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache

_ENTITY = re.compile(r"&(?:gt|lt|quot|apos|nbsp|rarr|rArr|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5});")
_KEYCAP = re.compile("([0-9])\ufe0f?\u20e3")
_SEPARATORS = {"COMMA": ",", "SEMICOLON": ";", "COLON": ":", "STOP": ".", "DANDA": ".", "EQUALS": "="}
_RIGHT = ("RIGHTWARDS", "RIGHT-POINTING", "RIGHT POINTING", "DIRECTLY RIGHT", "GREATER-THAN", "SUCCEEDS", "DOWNWARDS")
_LEFT = ("LEFTWARDS", "LEFT-POINTING", "LEFT POINTING", "LESS-THAN", "PRECEDES")
# Numbers as Chinese and Japanese write them: 二十三, 一百零五. 两 is Lo without a value in some versions of Unicode.
_HAN_DIGITS = "零〇一二两三四五六七八九十百"
_HAN_NUMBER = re.compile(
    rf"(?:(?<=[第名位号档章落记选句编\[(])|(?<![^\W\d_]))[{_HAN_DIGITS}]{{1,7}}(?=[名位号篇条段个项则\])]|(?![^\W\d_]))"
)


def fold(text: str) -> str:
    """The text with ASCII digits, brackets, arrows (`>`, `<`), separators and spaces; letters stay."""
    text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = _KEYCAP.sub(r"(\1)", text)
        text = text.translate({ord(character): _folded(character) for character in set(text) if character > "\x7f"})
        text = _HAN_NUMBER.sub(lambda number: _han_value(number[0]), text)
    return re.sub("\r\n?|[\x0b\x0c\x1c-\x1e]", "\n", text)


@lru_cache(maxsize=1 << 14)
def _folded(character: str) -> str:
    """What stands for one character beyond ASCII; white space lines, and what is not seen is nothing."""
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    name = unicodedata.name(character, "")
    if category in ("No", "Nl"):
        return _number(character, name)
    plain = unicodedata.normalize("NFKC", character)
    if plain != character and len(plain) <= 32:
        return "".join(part if part <= "\x7f" else _folded(part) for part in plain if part != character)
    if category[0] in "LM":
        return "" if category == "Me" or "VARIATION SELECTOR" in name else character
    if category[0] in "PS":
        return _symbol(category, name)
    return {"Cf": "", "Zl": "\n", "Zp": "\n"}.get(category, "\n" if character == "\x85" else " ")


def _number(character: str, name: str) -> str:
    """Digits; in parentheses where they are enclosed (①, ❶, ⑴), for they stand close to one another."""
    value = unicodedata.numeric(character)
    if value != int(value):
        return " "
    digits = str(int(value))
    if "CIRCLED" in name or "PARENTHESIZED" in name:
        return f"({digits})"
    return f"{digits}." if "FULL STOP" in name or "COMMA" in name else digits


def _symbol(category: str, name: str) -> str:
    if "BRACKET" not in name and category not in ("Ps", "Sc"):
        right, left = any(part in name for part in _RIGHT), any(part in name for part in _LEFT)
        if right != left:
            return ">" if right else "<"
        if name == "KEYCAP TEN":
            return "(10)"
    if category in ("Pi", "Pf") or "QUOTATION" in name:
        return "'" if "SINGLE" in name else '"'
    if category in ("Ps", "Pe"):
        return "[" if category == "Ps" else "]"
    if category == "Pd":
        return "-"
    return next((ascii_sign for part, ascii_sign in _SEPARATORS.items() if part in name), ",")


def _han_value(digits: str) -> str:
    """`二十三` is 23; a run without 十 and 百 is read digit by digit."""
    if not set(digits) & set("十百"):
        return "".join(str(_han_digit(digit)) for digit in digits)
    total = unit = 0
    for digit in digits:
        if digit in "十百":
            total += max(unit, 1) * (10 if digit == "十" else 100)
            unit = 0
        else:
            unit = _han_digit(digit)
    return str(total + unit)


def _han_digit(digit: str) -> int:
    return 2 if digit == "两" else int(unicodedata.numeric(digit))
