"""Chains of ids in normalised text: runs of `[3] > [1]`, lists with one id a line, lines of bare numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from qilin_tasks.parsing.ranking_text import LABEL

BRACKETED = re.compile(
    rf"(?:(?<![a-z]){LABEL}\s*)?\[\s*(?:{LABEL}\s*[:#]?\s*)?#?\s*(-?[0-9]{{1,9}})\s*\]", re.IGNORECASE
)
LABELLED = re.compile(rf"(?<![a-z0-9])(?:{LABEL}\s*#?|id\s*:|#)\s*([0-9]{{1,9}})(?![0-9a-z]|[.,][0-9])", re.IGNORECASE)

RANK = r"(?:(?:rank|top|no\.?|number|第|อันดับ(?:ที่)?|ลำดับ(?:ที่)?|ที่)\s*)"
_ORDINAL = rf"(?:{RANK}?\(?(?P<ordinal>[0-9]{{1,3}})\s*(?:st|nd|rd|th|名|位)?\s*[.):|、]*)"
_LINE_START = re.compile(rf"[\s|>({{\[#-]*{_ORDINAL}?[\s|>({{\[:-]*\Z", re.IGNORECASE)
# Written so that no text has two readings: a failed match must not try them all.
_REMARK = r"\([^()\[\]\n]{0,80}\)|:\s*[0-9]+(?:\.[0-9]+)?(?![0-9]|\.[0-9])%?"
_BETWEEN = re.compile(
    rf"(?:[\s,;、。.|/><≺=~–—&+{{}}\[\]-]|{_REMARK}|(?:and|then|followed by|和|以及|与|及|และ|ตามด้วย)(?![a-z])"
    r"|(?<![0-9])[0-9]{1,3}(?:st|nd|rd|th)?\s*[.):、])*",
    re.IGNORECASE,
)
_LONGEST_LINE_START, _LONGEST_BETWEEN = 80, 300
_ARROW_BEFORE = re.compile(r">\s*\[?\Z")
_WRAPPED = re.compile(r"[>,;、]\s*\n|\n\s*>")
_WORD = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Chain:
    """Ids as written, best first. `structured`: a line, a list or a comparison, not a mention in prose.

    `echo`: one id a line with text behind it and no rank before it, as a model repeats what it was shown.
    """

    ids: tuple[int, ...]
    structured: bool
    echo: bool = False


@dataclass(frozen=True)
class _Run:
    """Linked ids within one line."""

    ids: tuple[int, ...]
    start: int
    end: int
    leads: bool
    """Only bullets and ordinals stand before it on its line."""
    ordinal: int | None
    structured: bool
    prose_behind: bool


def chains(text: str, token: re.Pattern[str]) -> list[Chain]:
    """Chains of the ids that `token` finds, in order of appearance."""
    runs = list(_runs(text, token))
    found: list[Chain] = []
    place = 0
    while place < len(runs):
        items = _items(text, runs, place)
        ids = tuple(i for run in items for i in run.ids)
        plain = all(run.prose_behind and run.ordinal is None for run in items)
        found.append(Chain(ids, any(run.structured for run in items), echo=len(items) > 1 and plain))
        place = next(i for i in range(place, len(runs)) if runs[i] is items[-1]) + 1
    return found


def _runs(text: str, token: re.Pattern[str]) -> Iterator[_Run]:
    tokens = list(token.finditer(text))
    place = 0
    while place < len(tokens):
        last, signs = place, ""
        while last + 1 < len(tokens):
            gap = text[tokens[last].end() : tokens[last + 1].start()]
            if not _linked(gap):
                break
            signs += gap
            last += 1
        start, end = tokens[place].start(), tokens[last].end()
        before = text[text.rfind("\n", 0, start) + 1 : start]
        line_end = text.find("\n", end)
        behind = text[end : line_end if line_end >= 0 else len(text)]
        lead = _LINE_START.match(before) if len(before) <= _LONGEST_LINE_START else None
        ids = tuple(int(match[1]) for match in tokens[place : last + 1])
        yield _Run(
            ids=ids[::-1] if re.search("[<≺]", signs) and ">" not in signs else ids,
            start=start,
            end=end,
            leads=lead is not None,
            ordinal=int(lead["ordinal"]) if lead and lead["ordinal"] else None,
            structured=lead is not None or ">" in signs or before.rstrip(" [({").endswith(":"),
            prose_behind=bool(_WORD.search(behind)),
        )
        place = last + 1


def _linked(gap: str) -> bool:
    """Whether two ids with `gap` between them belong to one run: separators only, or a title that an arrow ends."""
    if len(gap) > _LONGEST_BETWEEN:
        return False
    if "\n" in gap:
        return bool(_WRAPPED.search(gap)) and _BETWEEN.fullmatch(gap) is not None
    return _BETWEEN.fullmatch(gap) is not None or bool(_ARROW_BEFORE.search(gap))


def _items(text: str, runs: list[_Run], place: int) -> list[_Run]:
    """The run at `place` and, where it is an item of a list with one id a line, the items that follow."""
    items = [runs[place]]
    if not (runs[place].leads and len(runs[place].ids) == 1):
        return items
    for run in runs[place + 1 :]:
        between = text[items[-1].end : run.start]
        if not run.leads:
            if "\n" in between and items[-1].ordinal is None:
                break
            continue
        lines = between.split("\n")[1:-1]
        interrupted = any(line.strip(" \t|:-") for line in lines)
        if len(run.ids) != 1 or not _continues(items[-1].ordinal, run.ordinal, interrupted):
            break
        items.append(run)
    return items


def _continues(previous: int | None, ordinal: int | None, interrupted: bool) -> bool:
    if previous is None or ordinal is None:
        return previous is None and ordinal is None and not interrupted
    return ordinal > previous or (ordinal == previous and not interrupted)
