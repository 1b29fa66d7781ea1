"""Which of the numbered notes an answer cites, and which of its sentences cite none."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from qilin_tasks.text.sentences import split_sentences
from qilin_tasks.text.tokens import clean, tokenize_chars

_N = r"[0-9]{1,3}(?![0-9])"
_WIDEST = 100
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}")
_JOIN = r"\s*(?:[,、;和及与&~–—-]|to|and|至|到)\s*"
_LIST = rf"{_N}(?:{_JOIN}(?:笔记)?{_N}){{0,40}}"
_NAMED = "笔记|来源|参考|notes?|source"
_WORD = rf"(?:{_NAMED}|\^)"
_CITATION = re.compile(
    rf"[\[【]\s*{_WORD}?\s*(?P<inside>{_LIST})\s*[\]】]|(?<![a-z])(?:{_NAMED})\s*(?P<prose>{_LIST})", re.IGNORECASE
)
_RANGE = re.compile(rf"({_N})\s*(?:[~–—-]|to|至|到)\s*(?:笔记)?({_N})|({_N})")
# A mark behind the full stop belongs to the sentence before it. Of a run of stops only the first can begin a match:
# trying each of them is quadratic.
_BEHIND = re.compile(r"(?<![。！？!?.])([。！？!?.]+)((?:\s*(?:[\[【][^\[\]【】\n]{1,40}[\]】]))+)")


class Citations(NamedTuple):
    """Distinct numbers in order of appearance; sentences of the answer, and those of them without a number."""

    numbers: tuple[int, ...]
    sentences: int
    uncited: int


def parse_citations(answer: str | None) -> Citations:
    """Reads [1], 【1】, ［１］, [1][3], [1,3], [1-3], 笔记1, note 1 and superscripts, anywhere. Never raises."""
    numbers: dict[int, None] = {}
    sentences = uncited = 0
    for sentence in split_sentences(_BEHIND.sub(r"\2\1", _plain(answer)), language="zh"):
        cited = [number for match in _CITATION.finditer(sentence) for number in _numbers(match)]
        numbers.update(dict.fromkeys(cited))
        if tokenize_chars(_CITATION.sub("", sentence)):
            sentences += 1
            uncited += not cited
    return Citations(tuple(numbers), sentences, uncited)


def strip_citations(answer: str | None) -> str:
    """The answer without bracketed numbers and superscripts; a note named in prose is a part of it and stays."""
    plain = _SUPERSCRIPT.sub("", clean(answer))
    return _MARKS.sub(lambda match: "" if _CITATION.fullmatch(_plain(match[0])) else match[0], plain)


_MARKS = re.compile(r"[\[【［][^\[\]【】［］\n]{1,40}[\]】］]")


def _plain(answer: str | None) -> str:
    marked = _SUPERSCRIPT.sub(lambda match: f"[{unicodedata.normalize('NFKC', match[0])}]", clean(answer))
    # Only what brackets and numbers are written with: sentences keep their full-width marks.
    return marked.translate(_WIDTHS)


_WIDTHS = {ord("［"): "[", ord("］"): "]", ord("，"): ",", ord("－"): "-", ord("～"): "~"} | {
    ord(wide): str(value) for value, wide in enumerate("０１２３４５６７８９")
}


def _numbers(match: re.Match[str]) -> list[int]:
    found: list[int] = []
    for low, high, single in _RANGE.findall(match["inside"] or match["prose"]):
        if single:
            found.append(int(single))
        elif 0 <= int(high) - int(low) <= _WIDEST:
            found += range(int(low), int(high) + 1)
        else:
            found += [int(low), int(high)]
    return found
