"""What a judge wrote -> nuggets and verdicts; None where it can't be read, which is counted and never a score."""

from __future__ import annotations

import re
from typing import NamedTuple

from qilin_tasks.parsing.answers import REFUSED, strip_reasoning

VERSION = "v1"
#: A nugget's verdicts and what they count.
SUPPORT = {"supported": 1.0, "partial": 0.5, "not": 0.0}
#: A pair's verdicts and what they count for the answer that was shown first.
PAIR = {"first": 1.0, "tie": 0.5, "second": 0.0}
#: The same verdict on the pair the other way round.
MIRROR = {"first": "second", "tie": "tie", "second": "first"}
MOST_NUGGETS = 10

_SUPPORT = re.compile(
    r"(?P<partial>部分(?:地)?支持|partial(?:ly)?[ _-]?support(?:ed|s)?|support(?:ed|s)? partially|\bpartial(?:ly)?\b)"
    r"|(?P<not>(?:不|未|没有|没|无法|并非)(?:被|能|完全)?支持"
    r"|(?:not|n't|un|non)[ _-]?(?:be |fully |been )?support(?:ed)?\b)"
    r"|(?P<supported>支持|\bsupport(?:ed|s)\b)",
    re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?P<tie>平局|平手|不分(?:高下|上下|胜负)|\btie[ds]?\b|\bequal(?:ly)?\b)"
    r"|(?:回答|答案|answer|response)[ \t]*[#:：]?[ \t]*(?:(?P<first>[1１一])|(?P<second>[2２二]))(?![\d０-９])",
    re.IGNORECASE,
)
_LONE = re.compile(r"\W*(?:(?P<first>[1１])|(?P<second>[2２]))\W*\Z")
_ANNOUNCED = re.compile(r"(?:判断|结论|裁决|verdict|judge?ment|conclusion)(?:是|为| is)?\s*[:：]?\s*", re.IGNORECASE)
_NUGGET = re.compile(
    r"^[\s\-*•·]*(?:\d+[.、)）]\s*\**)?(?P<kind>关键|次要|vital|okay|ok)\**\s*[:：]\s*\**(?P<text>\S.*)$",
    re.IGNORECASE,
)
_VITAL = ("关键", "vital")


class Nugget(NamedTuple):
    """A short statement; `vital` ones an answer must hold."""

    text: str
    vital: bool


def read_nuggets(text: str | None) -> list[Nugget] | None:
    """The lines that begin with a kind, at most ten, each once; None where there is none."""
    found: dict[str, Nugget] = {}
    for line in _answer(text).splitlines():
        if match := _NUGGET.match(line):
            nugget = Nugget(match["text"].strip(" *\t\r"), match["kind"].lower() in _VITAL)
            if nugget.text:
                found.setdefault(nugget.text, nugget)
    return list(found.values())[:MOST_NUGGETS] or None


def read_support(text: str | None) -> str | None:
    """A key of SUPPORT; None for none, and for several that no word such as `verdict:` decides between."""
    return _read(text, _SUPPORT)


def read_pair(text: str | None) -> str | None:
    """A key of PAIR, read as `read_support` reads; a lone 1 or 2 counts."""
    answer = _answer(text)
    lone = _LONE.match(answer)
    return _kind(lone) if lone else _read(text, _PAIR)


def _answer(text: str | None) -> str:
    return "" if text is None or text == REFUSED else strip_reasoning(text).text


def _read(text: str | None, pattern: re.Pattern[str]) -> str | None:
    answer = _answer(text)
    verdicts = {_kind(match) for match in pattern.finditer(answer)}
    if len(verdicts) == 1:
        return verdicts.pop()
    said = {_kind(match) for mark in _ANNOUNCED.finditer(answer) if (match := pattern.match(answer, mark.end()))}
    return said.pop() if len(said) == 1 else None


def _kind(match: re.Match[str]) -> str:
    return next(name for name, value in match.groupdict().items() if value)
