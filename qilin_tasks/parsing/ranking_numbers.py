"""Chains of bare numbers: comparisons, and lines, or lists after a colon, that are nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from qilin_tasks.parsing.ranking_chains import RANK
from qilin_tasks.parsing.ranking_forms import Chain, Form
from qilin_tasks.parsing.ranking_values import ordered

_N = r"-?[0-9]{1,9}"
_LIST = rf"[({{]? ?(?P<list>{_N}(?:(?: ?[,;>=] ?(?:(?:and|then|和) ?)?| (?:(?:-|and|then|和) )?){_N})*) ?[)}}]?"
_REMARK = r"(?: ?\([^()\n]{0,80}\))?"
_LINE = re.compile(rf"{_LIST}{_REMARK}(?P<stop> ?[.;,]?)", re.IGNORECASE)
_AFTER_COLON = re.compile(rf"(?:(?<![0-9]):\s*|: ){_LIST}{_REMARK} ?[.;,]?\Z", re.IGNORECASE)
_RANKED = re.compile(
    rf"(?:{RANK}\(?(?P<rank>[0-9]{{1,3}}) ?(?:st|nd|rd|th|名|位)? ?[.):|>=,-]?\s*|"
    rf"\(?(?P<ordinal>[0-9]{{1,3}}) ?(?:(?:st|nd|rd|th|名|位) ?[.):]?|[.):|,])\s+)(?P<id>{_N}) ?[.]?",
    re.IGNORECASE,
)
_SCORED = re.compile(r"(?P<id>[0-9]{1,4}) ?[:=,|-] ?(?P<score>[0-9]{1,3}\.[0-9]{1,9})[,;]?")
# Any other sign between numbers, all of one kind: a ranking only where it is complete, else it may be a date.
_SIGNED = re.compile(
    r"(?:[^\n]{0,60}: ?)?(?P<ids>[0-9]{1,4}(?P<sign> ?[^\w\s] ?)[0-9]{1,4}(?:(?P=sign)[0-9]{1,4})+) ?\.?"
)
_NAMED = re.compile(r"(?<![^\W_])(?P<name>[^\W\d_]{1,16})[ _#.-]?(?P<id>[0-9]{1,3})(?![\w%]|[.,][0-9])")
_TOKEN = re.compile(r"(?<![\w.,:/%-])[0-9]{1,4}(?![\w%]|[.,:/][0-9])")
_ARROW_BETWEEN = re.compile(r"[^\d<>\n]{0,60}[<>][ \[({#|>-]{0,6}| ?[=,;&] ?")
_SIGNS_BETWEEN = re.compile(r" ?[,;>=&|] ?")
_ITEM = re.compile(_N)
_KEYWORD = re.compile(
    r"rank|order|answer|result|output|relevan|排序|排名|顺序|答案|结果|คำตอบ|อันดับ|ลำดับ|ผลลัพธ์", re.IGNORECASE
)
_LONGEST_LINE = 20_000


def number_chains(text: str) -> list[Chain]:
    """Chains of bare numbers in normalised text, in order of appearance; years and prose numbers are in none."""
    found: list[Chain] = []
    ids: list[int] = []
    previous: int | None = None
    start = 0
    scores: list[tuple[int, float]] = []
    for number, raw in enumerate(text.split("\n")):
        line = raw.strip(" \t|-")
        if not line:
            continue
        scored = _SCORED.fullmatch(line) if len(line) <= 40 else None
        if scored:
            scores.append((int(scored["id"]), float(scored["score"])))
            continue
        item = _item(line)
        if scores:
            found += _by_score(scores, number)
        if item is None:
            found += _flush(ids, start)
            found += _lists(line, number, raw.find(line[:20]))
            continue
        ordinal, identifier = item
        if ids and (ordinal is None) != (previous is None):
            found += _flush(ids, start)
        if ids and ordinal is not None and previous is not None and ordinal < previous:
            found += _flush(ids, start)
        start = start if ids else number
        ids.append(identifier)
        previous = ordinal
    return found + _by_score(scores, start) + _flush(ids, start)


def _item(line: str) -> tuple[int | None, int] | None:
    """(ordinal, id) where the line holds one id and nothing else; `3.` is an ordinal without an id."""
    ranked = _RANKED.fullmatch(line) if len(line) <= 80 else None
    if ranked:
        return int(ranked["rank"] or ranked["ordinal"]), int(ranked["id"])
    if len(line) <= 12 and _ITEM.fullmatch(line.rstrip(",;")):
        return None, int(line.rstrip(",;"))
    return None


def _lists(line: str, number: int, offset: int) -> Iterator[Chain]:
    if len(line) > _LONGEST_LINE or "[" in line:
        return
    # `Ranking: 3, 1, 2. Explanation: …`
    parts = re.split(r"(?<=[0-9)]) ?[.;](?= ?[^\W\d_])", line)
    for part in parts:
        yield from (found for found in _in_part(part.strip(), number, offset) if len(parts) == 1 or len(found.ids) > 1)


def _in_part(line: str, number: int, offset: int) -> Iterator[Chain]:
    whole = _LINE.fullmatch(line)
    if whole:
        ids = _numbers(whole["list"])
        if len(ids) > 1 or not whole["stop"].strip():
            yield _chain(ids, whole["list"], number, offset)
        return
    compared = list(_comparisons(line))
    if compared:
        for ids, signs, start, standing in compared:
            yield _chain(ids, signs, number, offset + start, standing=standing)
        return
    listed = _AFTER_COLON.search(line)
    if listed:
        ids = _numbers(listed["list"])
        if len(ids) > 1 or _KEYWORD.search(line, 0, listed.start()):
            yield _chain(ids, listed["list"], number, offset + listed.start("list"))
            return
    yield from _doubtful(line, number, offset)


def _comparisons(line: str) -> Iterator[tuple[tuple[int, ...], str, int, bool]]:
    """Runs of numbers with arrows: (ids, signs, start, standing); in a sentence three at least."""
    if ">" not in line and "<" not in line:
        return
    tokens = list(_TOKEN.finditer(line))
    place = 0
    while place < len(tokens):
        last, signs = place, ""
        while last + 1 < len(tokens):
            gap = line[tokens[last].end() : min(tokens[last + 1].start(), tokens[last].end() + 80)]
            if not _ARROW_BETWEEN.fullmatch(gap):
                break
            signs += gap
            last += 1
        start, end = tokens[place].start(), tokens[last].end()
        before = line[max(0, start - 60) : start].rstrip(" [({#|,-").lower()
        standing = not before or before.endswith((":", "=", "is", "为", "是"))
        count = last + 1 - place
        if re.search("[<>]", signs) and (count > 2 or (count == 2 and standing and len(line) - end < 20)):
            yield tuple(int(token[0]) for token in tokens[place : last + 1]), signs, start, standing
        place = last + 1


def _doubtful(line: str, number: int, offset: int) -> Iterator[Chain]:
    """Lists that only a complete permutation makes credible."""
    tail = line.rstrip(".")
    tail = tail[len(tail.rstrip("0123456789 ,;>=")) :].strip()
    listed = _LINE.fullmatch(tail) if tail and _KEYWORD.search(line) else None
    if listed and len(tail) < len(line):
        yield _chain(_numbers(listed["list"]), listed["list"], number, offset, doubtful=True)
    signed = _SIGNED.fullmatch(line)
    if signed:
        ids = tuple(int(digits) for digits in re.findall("[0-9]+", signed["ids"]))
        yield _chain(ids, "", number, offset, doubtful=True)
    named = list(_NAMED.finditer(line)) if len(line) < 4000 else []
    if len(named) > 1 and len({found["name"].lower() for found in named}) == 1:
        gaps = [line[one.end() : other.start()] for one, other in pairwise(named)]
        if all(_SIGNS_BETWEEN.fullmatch(gap) for gap in gaps):
            signs = "".join(gaps)
            yield _chain(
                [int(found["id"]) for found in named], signs, number, offset, doubtful=re.search("[<>]", signs) is None
            )


def _chain(
    ids: tuple[int, ...] | list[int],
    signs: str,
    line: int,
    start: int,
    *,
    standing: bool = True,
    doubtful: bool = False,
) -> Chain:
    less = "<" in signs and ">" not in signs
    form = Form.ARROW if re.search("[<>]", signs) else Form.PLAIN
    return Chain(
        tuple(ids[::-1] if less else ids), form, line, max(start, 0), standing=standing, marked=False, doubtful=doubtful
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _ITEM.findall(text))


def _by_score(scores: list[tuple[int, float]], line: int) -> list[Chain]:
    ids, values = [i for i, _ in scores], [score for _, score in scores]
    scores.clear()
    return [Chain(ordered(ids, values, ranks=False), line=line - 1, marked=False, doubtful=True)] if ids else []


def _flush(ids: list[int], line: int) -> list[Chain]:
    chain = [Chain(tuple(ids), line=line, marked=False)] if ids else []
    ids.clear()
    return chain
