"""Chains in tables whose header names the columns of ids, ranks or scores: Markdown, CSV and TSV."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qilin_tasks.parsing.ranking_forms import Chain, Form
from qilin_tasks.parsing.ranking_text import normalise
from qilin_tasks.parsing.ranking_values import RANK_KEY, SCORE_KEY, ordered, scalar

ID_KEY = re.compile(
    r"(?<![a-z])id(?![a-z])|docid|index|identifier|passage|document|(?<![a-z])doc(?![a-z])|note|candidate|item|sentence"
    r"|article|paragraph|snippet|编号|文档|文章|段落|笔记|候选|句子|เอกสาร|ข้อความ|บทความ|โน้ต|หมายเลข",
    re.IGNORECASE,
)
_ORDINAL_KEY = re.compile(r"#|no\.?|number|序号|ที่", re.IGNORECASE)
_CELL_ID = re.compile(
    r"\W{0,3}(?:[^\W\d_]{1,12}(?: id)?[ _#:.-]{0,2})?\[? ?(?:[^\W\d_]{1,12}[ _#:-]{0,2})?#?([0-9]{1,9})"
    r"(?![0-9]|\.[0-9]|[^\W_])"
)
_RULE = re.compile(r"[\s|:+=-]+")
_LONGEST_ROW, _MOST_ROWS = 4000, 2000


def id_of(written: str) -> int | None:
    """The id that a cell or a JSON value holds: `3`, `[3]`, `Passage 3`, `[3] title`; None where it is neither."""
    found = _CELL_ID.match(normalise(written[:80]))
    return int(found[1]) if found else None


def table_parts(text: str) -> list[str | Chain]:
    """The text with a chain in the place of each table that was read."""
    lines = text.split("\n")
    parts: list[str | Chain] = []
    place = done = 0
    while place < len(lines):
        sign = _sign(lines[place : place + 3])
        end = place + 1
        if sign is not None:
            width = len(_cells(lines[place], sign)) if sign != "|" else None
            while end < min(len(lines), place + _MOST_ROWS) and _is_row(lines[end], sign, width):
                end += 1
            rows = [_cells(line, sign) for line in lines[place:end] if not _RULE.fullmatch(line)]
            chain = _chain(rows) or _chain([list(row) for row in zip(*rows, strict=False)])
            if chain:
                parts += ["\n".join(lines[done:place]), chain]
                done = end
        place = end
    return [*parts, "\n".join(lines[done:])]


def _is_row(line: str, sign: str, width: int | None) -> bool:
    return sign in line and len(line) <= _LONGEST_ROW and width in (None, len(_cells(line, sign)))


def _sign(lines: Sequence[str]) -> str | None:
    """What parts the cells of a table that begins with these lines: a header, or rows that begin with names."""
    header = lines[0]
    if len(header) > _LONGEST_ROW:
        return None
    names = [
        header,
        *(line.strip("| ").split("|")[0] for line in lines[1:] if "|" in header and len(line) < _LONGEST_ROW),
    ]
    if not any(RANK_KEY.search(name) or SCORE_KEY.search(name) for name in names):
        return None
    if "|" in header:
        return "|"
    words = all(re.fullmatch(r"[^\W\d][\w #]{0,30}", cell.strip()) for cell in re.split("[,\t]", header))
    return next((sign for sign in "\t," if words and sign in header), None)


def _cells(line: str, sign: str) -> list[str]:
    line = line.strip()
    if sign == "|":
        line = line.removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in line.split(sign)]


def _chain(rows: Sequence[Sequence[str]]) -> Chain | None:
    """The ids by the rank or the score column; None where the header or the cells are of another kind."""
    if len(rows) < 2:
        return None
    header, body = rows[0], rows[1:]
    ranks = [column for column, name in enumerate(header) if RANK_KEY.search(name)]
    scores = [column for column, name in enumerate(header) if SCORE_KEY.search(name) and column not in ranks]
    named = [column for column, name in enumerate(header) if ID_KEY.search(name) and column not in (*ranks, *scores)]
    counted = [column for column, name in enumerate(header) if _ORDINAL_KEY.fullmatch(name.strip())]
    for identifiers in (*named, *counted):
        for values, by_rank in [(column, True) for column in ranks] + [(column, False) for column in scores]:
            pairs = [
                (id_of(row[identifiers]), scalar(normalise(row[values])))
                for row in body
                if len(row) > max(identifiers, values)
            ]
            known = [(i, value) for i, value in pairs if i is not None and value is not None]
            if known and len(known) >= len(body) * 0.6:
                ids = ordered([i for i, _ in known], [value for _, value in known], ranks=by_rank)
                return Chain(ids, Form.PLAIN)
    return None
