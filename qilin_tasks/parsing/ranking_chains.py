"""Chains of ids in normalised text: runs of `[3] > [1]`, lists with one id a line, sentences that mention ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qilin_tasks.parsing.ranking_forms import Chain, Form
from qilin_tasks.parsing.ranking_text import CONNECTIVES, LABEL
from qilin_tasks.parsing.ranking_values import Value, by_value, value_after, value_within

BRACKETED = re.compile(
    rf"(?:(?<![a-z]){LABEL}[ _#:-]?)?\[ ?(?:{LABEL}[ _#:-]{{0,2}})?#? ?(?P<bracketed>-?[0-9]{{1,9}}) ?[.:)]?\]"
    rf"|(?<![a-z0-9])(?:{LABEL}[ _#-]{{0,2}}|id ?[:=] ?|#)(?P<labelled>[0-9]{{1,9}})"
    r"(?![0-9a-z]|[.,][0-9]| ?[:.)-]{1,2} ?\[)"
    r"|(?<![0-9])第 ?(?P<counted>[0-9]{1,4}) ?(?:篇|条|号|段|个|项|则|款)|(?<![0-9])(?P<numbered>[0-9]{1,4}) ?号",
    re.IGNORECASE,
)
ENCLOSED = re.compile(r"\( ?#?(?P<enclosed>[0-9]{1,4}) ?\)|\|(?P<barred>[0-9]{1,4})\|(?= ?(?:[,;<>]|\Z))")

RANK = r"(?:(?:rank|top|no\.?|number|place|第|อันดับ(?:ที่)?|ลำดับ(?:ที่)?|ที่)\s?#?)"
_ORDINAL = rf"(?P<word>{RANK})?\(?(?P<ordinal>[0-9]{{1,3}})\s?(?:st|nd|rd|th|名|位)?\)?(?: ?(?:place|choice))?"
_SIGNS = r"[^\w\n]{0,12}"
_LINE_START = re.compile(rf"{_SIGNS}(?:{_ORDINAL}{_SIGNS})?\Z", re.IGNORECASE)
_WORDED_START = re.compile(rf"{_SIGNS}[^\d\n:=\[\]]{{1,60}}[:=]{_SIGNS}\Z")
# Written so that no text has two readings: a failed match must not try them all.
_BETWEEN = re.compile(
    r"(?:[ ,;.|/><=~–—&+{}\[\]-]|\([^()\[\]\n]{0,80}\)"
    rf"|{CONNECTIVES}(?![a-z])|{RANK}\(?[0-9]{{1,3}}(?:st|nd|rd|th|名|位)?\)?[.:]?"
    r"|(?<![0-9])[0-9]{1,3}(?:st|nd|rd|th)?\s?[.):])*",
    re.IGNORECASE,
)
_LONGEST_LINE_START, _LONGEST_BETWEEN, _LONGEST_BEHIND = 80, 300, 300
_ARROW_BEFORE = re.compile(r"[<>][ \[({]{0,4}\Z")
_WORD = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class _Run:
    """Linked ids within one line."""

    ids: tuple[int, ...]
    values: tuple[Value | None, ...]
    line: int
    start: int
    end: int
    arrow: bool
    leads: bool
    """Only signs and an ordinal, or words and a colon, stand before it on its line."""
    worded: bool
    ordinal: int | None
    ranked: bool
    """The ordinal stands behind a word (`Rank 3:`), so that the list may be in any order."""
    colon: bool
    behind: str

    @property
    def prose(self) -> bool:
        return bool(_WORD.search(self.behind))


def chains(text: str) -> list[Chain]:
    """Chains of ids in brackets or behind words (`[3]`, `Passage 3`, `第3篇`), in order of appearance."""
    lines = text.split("\n")
    runs = [run for number, line in enumerate(lines) for run in _runs(line, number, BRACKETED)]
    return [*_chains(lines, runs), *_mentioned(runs)]


def enclosed_chains(text: str) -> list[Chain]:
    """Chains of `(3)` on lines without other ids; before words they number a list, so such a list is none."""
    lines = text.split("\n")
    runs = [
        run
        for number, line in enumerate(lines)
        if ("(" in line or "|" in line) and not BRACKETED.search(line)
        for run in _runs(line, number, ENCLOSED)
    ]
    return [chain for chain in _chains(lines, runs) if chain.form >= Form.PLAIN]


def _chains(lines: Sequence[str], runs: Sequence[_Run]) -> Iterator[Chain]:
    place = 0
    while place < len(runs):
        run = runs[place]
        if run.leads and len(run.ids) == 1:
            items = _items(lines, runs, place)
            yield _list([runs[item] for item in items])
            place = items[-1] + 1
        else:
            yield _inline(run)
            place += 1


def _runs(line: str, number: int, token: re.Pattern[str]) -> Iterator[_Run]:
    tokens = list(token.finditer(line))
    place = 0
    while place < len(tokens):
        last, signs, values = place, "", []
        while True:
            value = value_after(line, tokens[last].end())
            values.append(value)
            gap = _gap(line, tokens, last, value)
            if gap is None:
                break
            signs += gap
            last += 1
        ids = tuple(_id(found) for found in tokens[place : last + 1])
        if "<" in signs and ">" not in signs:
            ids, values = ids[::-1], values[::-1]
        start, end = tokens[place].start(), max(tokens[last].end(), value.end if value else 0)
        yield _run(line, number, start, end, ids, tuple(values), arrow=bool(re.search("[<>]", signs)), first=place == 0)
        place = last + 1


def _run(
    line: str,
    number: int,
    start: int,
    end: int,
    ids: tuple[int, ...],
    values: tuple[Value | None, ...],
    *,
    arrow: bool,
    first: bool,
) -> _Run:
    before = line[:start] if first and start <= _LONGEST_LINE_START else "x"
    lead = _LINE_START.match(before)
    worded = lead is None and _WORDED_START.match(before) is not None
    return _Run(
        ids=ids,
        values=values,
        line=number,
        start=start,
        end=end,
        arrow=arrow,
        leads=lead is not None or worded,
        worded=worded,
        ordinal=int(lead["ordinal"]) if lead and lead["ordinal"] else None,
        ranked=bool(lead and lead["word"]),
        colon=line[max(0, start - 6) : start].rstrip(" [({").endswith((":", "=")),
        behind=line[end : end + _LONGEST_BEHIND],
    )


def _id(found: re.Match[str]) -> int:
    return int(next(group for group in found.groups() if group is not None))


def _gap(line: str, tokens: Sequence[re.Match[str]], place: int, value: Value | None) -> str | None:
    """What links an id to the next one, less the value behind it; None where nothing does."""
    if place + 1 >= len(tokens):
        return None
    start, end = tokens[place].end(), tokens[place + 1].start()
    if end - start > _LONGEST_BETWEEN:
        return None
    if value and value.end <= end and _BETWEEN.fullmatch(line, value.end, end):
        return line[value.end : end]
    gap = line[start:end]
    return gap if _BETWEEN.fullmatch(gap) or _ARROW_BEFORE.search(gap) else None


def _inline(run: _Run) -> Chain:
    standing = run.leads or run.colon
    # `[1] and [2] are off topic` begins a sentence.
    sentence = run.behind.lstrip()[:1].isalpha()
    statement = Form.PLAIN if standing and not sentence else Form.MENTION
    form = Form.ARROW if run.arrow and len(run.ids) > 1 else statement
    ids = run.ids if run.arrow else by_value(run.ids, run.values, numbered=False)
    return Chain(ids, form, run.line, run.start, run.end, standing=standing)


def _list(items: Sequence[_Run]) -> Chain:
    ids = [run.ids[0] for run in items]
    ordinals = [run.ordinal for run in items if run.ordinal is not None]
    numbered = len(ordinals) == len(items)
    if numbered and len(set(ordinals)) == len(items):
        ids = [ids[place] for place in sorted(range(len(ids)), key=ordinals.__getitem__)]
    values = [run.values[0] or value_within(run.behind) for run in items]
    prose = any(run.prose for run in items)
    valued = len(items) > 1 and all(value is not None and value.kind != "number" for value in values)
    if prose and not valued:
        form = Form.LIST if numbered else Form.PROSE if len(items) > 1 else Form.MENTION
    else:
        form = Form.PLAIN
    first, last = items[0], items[-1]
    start = first.start if len(items) > 1 or first.line == last.line else 0
    return Chain(by_value(ids, values, numbered=numbered), form, first.line, start, last.end if first is last else 0)


def _items(lines: Sequence[str], runs: Sequence[_Run], place: int) -> list[int]:
    """The places of the run at `place`, an item of a list with one id a line, and of the items that follow."""
    items, seen, ordinals = [place], {runs[place].ids[0]}, {runs[place].ordinal}
    for number in range(place + 1, len(runs)):
        run, last = runs[number], runs[items[-1]]
        if run.line == last.line or not run.leads:
            continue
        between = lines[last.line + 1 : run.line]
        interrupted = any(_WORD.search(line) for line in between)
        if len(run.ids) != 1 or run.worded != last.worded or (run.ordinal is None) != (last.ordinal is None):
            break
        if run.ordinal is None or last.ordinal is None:
            heading = any(line.endswith(":") for line in between)
            again = run.ids[0] in seen and (interrupted or run.prose != last.prose)
            if heading or again:
                break
        elif not _follows(run, last, len(items), ordinals, runs[place], interrupted=interrupted):
            break
        items.append(number)
        seen.add(run.ids[0])
        ordinals.add(run.ordinal)
    return items


def _follows(run: _Run, last: _Run, length: int, ordinals: set[int | None], first: _Run, *, interrupted: bool) -> bool:
    """Whether a numbered item goes on: upwards, all with one number, in any order behind words, or counted down."""
    ordinal, previous = run.ordinal or 0, last.ordinal or 0
    if run.ranked and last.ranked:
        return ordinal not in ordinals
    down = previous < (first.ordinal or 0) or (length == 1 and previous > 2)
    return ordinal > previous or (ordinal == previous and not interrupted) or (down and ordinal == previous - 1)


def _mentioned(runs: Sequence[_Run]) -> Iterator[Chain]:
    """All ids of a line in the order of their first mention, where several runs stand on it."""
    place = 0
    while place < len(runs):
        end = place + 1
        while end < len(runs) and runs[end].line == runs[place].line:
            end += 1
        if end - place > 1:
            ids = dict.fromkeys(i for run in runs[place:end] for i in run.ids)
            yield Chain(
                tuple(ids), Form.MENTION, runs[place].line, runs[place].start, runs[end - 1].end, standing=False
            )
        place = end
