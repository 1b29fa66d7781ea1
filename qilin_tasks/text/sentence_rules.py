"""Sentence boundaries of any script by Unicode's sentence-break properties (UAX 29) and a language's abbreviations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import regex

from qilin_tasks.text.languages import LANGUAGES, Language

# Sentence terminators (! ? 。 । ؟ ۔ and their kin) and full stops, what closes a quotation or bracket behind them, and
# references such as [12]. The ellipsis is no terminator in Unicode.
_CLOSE = r"[\p{SB=Close}\p{Pf}\p{Pi}\"']*"
_REFERENCES = regex.compile(r"(?:\[[^\[\]\n]{1,30}\]){0,20}")
_FULL_STOP = regex.compile(r"\p{SB=ATerm}")
_LAST_WORD = regex.compile(r"[^\s(\[{\"“„«‘—–/]*$")
# Abbreviations of several parts are written with blanks or without: `u. a.`, `a. C.`, `т. е.`.
_PARTS = regex.compile(r"(?<![\p{L}\p{N}.])(?:\p{L}{1,5}\.\s?)*\p{L}{1,5}$")
_NEXT_PART = regex.compile(r"\s?(\p{L}{1,5})\.")
_QUOTATION = regex.compile(r"[\p{Pf}\p{Pi}\"“”„]")
_ROMAN = regex.compile(r"[IVXLC]{2,}")
_INITIALS = regex.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}|\p{Lu}|\p{Lo}\p{M}*")
_ORDINAL = regex.compile(r"\d{1,2}")
_LETTER_OR_DIGIT = regex.compile(r"[\p{L}\p{N}]")
_LOOK = 60
_NO_CUT_BEFORE = regex.compile(r"[\p{SB=SContinue}\p{SB=ATerm}\p{SB=STerm}…]")


@lru_cache(maxsize=8)
def _end(question_mark: str) -> Any:
    return regex.compile(rf"[\p{{SB=STerm}}\p{{SB=ATerm}}…\u037e{question_mark}]+{_CLOSE}|\n\s*\n")


def rule_cuts(text: str, *, language: str) -> Iterator[int]:
    """Where sentences end, by the rules of a language that has no rules of its own."""
    of = LANGUAGES[language]
    for match in _end(of.question_mark).finditer(text):
        if match.group()[0] == "\n":
            yield match.start()
            continue
        references = _REFERENCES.match(text, match.end())
        end = references.end() if references else match.end()
        if _ends(text, match.group(), start=match.start(), end=end, of=of):
            yield end


def _ends(text: str, mark: str, *, start: int, end: int, of: Language) -> bool:
    following = text[end : end + _LOOK]
    rest = following.lstrip()
    if not rest:
        return True
    spaced = len(rest) < len(following)
    stop = _FULL_STOP.match(mark) is not None
    if not spaced and (mark.isascii() or stop or mark[0] == "…" or not _LETTER_OR_DIGIT.match(rest)):
        return False
    if _NO_CUT_BEFORE.match(rest) or rest[0].islower():
        return False
    if not stop or mark[:2] in ("..", "．．"):
        return True
    if _QUOTATION.search(mark):
        return True  # What is quoted ends there: `«No.» Unos`, not `No. 5`.
    found = _LAST_WORD.search(text, max(0, start - _LOOK), start)
    word = found.group() if found else ""
    if word.lower().lstrip(".") in of.abbreviations or _INITIALS.fullmatch(word):
        return False
    if _in_parts(text[max(0, start - _LOOK) : start], following, of.abbreviations):
        return False
    return not (of.ordinals and (_ORDINAL.fullmatch(word) or _ROMAN.fullmatch(word)))


def _in_parts(before: str, following: str, abbreviations: frozenset[str]) -> bool:
    """Whether the stop belongs to an abbreviation of several parts, which ends here or goes on with the next word."""
    found = _PARTS.search(before)
    if found is None:
        return False
    parts = "".join(found.group().lower().split()).split(".")
    ends = {".".join(parts[first:]) for first in range(len(parts))}
    further = _NEXT_PART.match(following)
    if further:
        ends |= {f"{end}.{further.group(1).lower()}" for end in ends}
    return not ends.isdisjoint(abbreviations)
