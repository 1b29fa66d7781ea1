"""Chains of bare numbers: only where a whole line, or the whole of a list after a colon, is nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qilin_tasks.parsing.ranking_chains import RANK, Chain

_N = r"-?[0-9]{1,9}"
_LIST = rf"[({{]?\s*(?P<list>{_N}(?:(?:\s*[,;、>=]\s*(?:(?:and|then)\s+)?|\s+(?:(?:-|and|then)\s+)?){_N})*)\s*[)}}]?"
_LINE = re.compile(rf"{_LIST}(?P<stop>\s*[.。;,]?)", re.IGNORECASE)
_AFTER_COLON = re.compile(rf"(?:(?<![0-9]):\s*|:\s+){_LIST}\s*[.。;]?\Z", re.IGNORECASE)
_RANKED = re.compile(
    rf"(?:{RANK}\(?(?P<rank>[0-9]{{1,3}})\s*(?:st|nd|rd|th|名|位)?\s*[.):|]?\s*|"
    rf"\(?(?P<ordinal>[0-9]{{1,3}})\s*(?:(?:st|nd|rd|th)\s*[.):]?|[.):|])\s+)(?P<id>{_N})\s*[.。]?",
    re.IGNORECASE,
)
_COMPARISON = re.compile(rf"(?<![\w.,>-]){_N}(?:\s*>\s*{_N}){{2,}}(?![\w]|[.,][0-9])")
_ITEM = re.compile(_N)
_KEYWORD = re.compile(
    r"rank|order|answer|result|output|relevan|排序|排名|顺序|答案|结果|คำตอบ|อันดับ|ลำดับ|ผลลัพธ์", re.IGNORECASE
)
_LONGEST_LINE = 4000


def number_chains(text: str) -> list[Chain]:
    """Chains of bare numbers in normalised text, in order of appearance; years and prose numbers are in none."""
    found: list[Chain] = []
    ids: list[int] = []
    previous: int | None = None
    for line in text.splitlines():
        line = line.strip(" \t|-")
        if not line:
            continue
        item = _item(line)
        if item is None:
            found += _flush(ids)
            found += _lists(line)
            continue
        ordinal, number = item
        if ids and (ordinal is None) != (previous is None):
            found += _flush(ids)
        if ids and ordinal is not None and previous is not None and ordinal < previous:
            found += _flush(ids)
        ids.append(number)
        previous = ordinal
    return found + _flush(ids)


def _item(line: str) -> tuple[int | None, int] | None:
    """(ordinal, id) where the line holds one id and nothing else; `3.` is an ordinal without an id."""
    ranked = _RANKED.fullmatch(line) if len(line) <= _LONGEST_LINE else None
    if ranked:
        return int(ranked["rank"] or ranked["ordinal"]), int(ranked["id"])
    if _ITEM.fullmatch(line):
        return None, int(line)
    return None


def _lists(line: str) -> Iterator[Chain]:
    if len(line) > _LONGEST_LINE:
        return
    whole = _LINE.fullmatch(line)
    if whole:
        ids = _numbers(whole["list"])
        if len(ids) > 1 or not whole["stop"].strip():
            yield Chain(ids, structured=True)
        return
    listed = _AFTER_COLON.search(line)
    if listed:
        ids = _numbers(listed["list"])
        if len(ids) > 1 or _KEYWORD.search(line, 0, listed.start()):
            yield Chain(ids, structured=True)
            return
    for comparison in _COMPARISON.finditer(line):
        yield Chain(_numbers(comparison[0]), structured=True)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _ITEM.findall(text))


def _flush(ids: list[int]) -> list[Chain]:
    chain = [Chain(tuple(ids), structured=True)] if ids else []
    ids.clear()
    return chain
