"""What a model wrote as a ranking, brought to one notation: ASCII digits, `[3]` for a bracketed id, no markup."""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from functools import lru_cache

LABEL = (
    r"(?:passage|document|doc|note|candidate|sentence|item|id|(?<![a-z])[pds]"
    r"|文档|文章|段落|笔记|候选|编号|句子|เอกสาร|ข้อความ|ประโยค|บทความ|โน้ต|หมายเลข)"
)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_STAR_BULLET = re.compile(r"^([ \t]*)[*•·●▪◦‣+][ \t]+", re.MULTILINE)
_GREATER = re.compile(r"\\(?:succ|gt|rightarrow|to)(?![a-z])|[≻≫→⇒➔➜»›]|[-=]{1,2}>|>{2,}")
_LATEX = re.compile(r"\\(?:boxed|text|mathbf|mathrm)\s*(?=\{)|\\(?=[\[\](){}_>#*-])|\$")
_NOISE = re.compile("[*`\"'“”‘’„«\u200b-\u200f\u2060\ufeff]")
_OPENING = str.maketrans("【〔〖「『", "[[[[[")
_CLOSING = str.maketrans("】〕〗」』", "]]]]]")
_NUMBER = r"(?:#\s*)?-?[0-9]{1,9}"
_LIST = re.compile(
    rf"\[\s*(?P<items>{_NUMBER}(?:\s*[,;、|>/]\s*{_NUMBER}|\s+{_NUMBER})+)\s*(?P<stop>[,;、>]?)\s*(?:(?P<close>\])|\Z)"
)
_ITEM = re.compile(r"-?[0-9]{1,9}")


def normalise(text: str) -> str:
    """One notation for what means the same; `[3, 1, 2]` becomes `[3] , [1] , [2]`.

    Full-width and Thai digits, `【3】`, `\\[3\\]`, arrows of LaTeX and HTML, fences, Markdown emphasis and quotes go.
    A list that isn't closed loses its last number where that may be cut.
    """
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_digits())
    text = text.translate(_OPENING).translate(_CLOSING)
    text = _STAR_BULLET.sub(r"\1- ", _FENCE.sub("", text))
    text = _LATEX.sub("", _GREATER.sub(">", text))
    return _LIST.sub(_spread, _NOISE.sub("", text))


def _spread(match: re.Match[str]) -> str:
    numbers = _ITEM.findall(match["items"])
    if match["close"] is None and not match["stop"]:
        numbers.pop()
    return " , ".join(f"[{number}]" for number in numbers)


@lru_cache(maxsize=1)
def _digits() -> dict[int, str]:
    """Every decimal digit of Unicode beyond ASCII that NFKC leaves as it is (Thai, Arabic, ...)."""
    return {
        code: str(unicodedata.digit(chr(code)))
        for code in range(128, sys.maxunicode + 1)
        if unicodedata.category(chr(code)) == "Nd"
    }
