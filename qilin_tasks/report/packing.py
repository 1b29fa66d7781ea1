"""What the page's sample browser reads: names, scores as columns of integers, texts in blocks, unpacked when opened.

Everything is gzip in base64, inside elements that no browser runs. Answers of all models to one document stand next to
each other, where gzip finds what they share. Texts for which the page has no room lie beside it, or are shortened.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qilin_tasks.report.collect import Board, Column, Row, over_all
from qilin_tasks.report.flags import flags_of

#: Scores are sent as integers, this many to a unit.
UNIT = 10_000
BLOCK = 64
#: Of a query in the list.
QUERY_CHARS = 120
#: (characters of a passage, of an output): the first that fits is taken. A page has room for the texts of about
#: thirty thousand answers whole.
LEVELS = ((2000, 20_000), (600, 4000), (300, 2000), (200, 1200), (120, 800), (80, 500), (50, 300), (30, 150), (15, 60))
_SAMPLED_BLOCKS = 3


@dataclass(frozen=True)
class Packed:
    """All as base64 text: `core` and `blocks` by element id are in the page, `beside` are files by name.

    `level` is what the texts were shortened to.
    """

    core: str
    blocks: dict[str, str]
    beside: dict[str, str]
    level: tuple[int, int]

    @property
    def size(self) -> int:
        """Characters of what is in the page."""
        return len(self.core) + sum(map(len, self.blocks.values()))


def pack(boards: Sequence[Board], *, budget: int, title: str, one_file: bool) -> Packed:
    """Pack all boards into about `budget` characters of base64.

    Where the texts don't fit they go beside the page; with `one_file` they are shortened until they fit.
    """
    columns = [(f"{b}.{c}", column) for b, board in enumerate(boards) for c, column in enumerate(board.columns)]
    core = _squeeze(
        {"title": title, "unit": UNIT, "block": BLOCK, "boards": [_core(b, i) for i, b in enumerate(boards)]}
    )
    lists = {
        f"c{b}.{c}": _squeeze(_data(column, board.metrics))
        for b, board in enumerate(boards)
        for c, column in enumerate(board.columns)
    }
    room = budget - len(core) - sum(map(len, lists.values()))
    level = LEVELS[0]
    if one_file:
        level = next((level for level in LEVELS if _estimate(columns, level) < room), LEVELS[-1])
    while True:
        blocks = _blocks(columns, level)
        if sum(map(len, blocks.values())) <= room or (one_file and level == LEVELS[-1]):
            return Packed(core, lists | blocks, {}, level)
        if not one_file:
            return Packed(core, lists, blocks, level)
        level = LEVELS[LEVELS.index(level) + 1]


def _blocks(columns: Sequence[tuple[str, Column]], level: tuple[int, int]) -> dict[str, str]:
    return {
        f"t{name}.{start // BLOCK}": _squeeze(_texts(column, keys[start : start + BLOCK], level))
        for name, column in columns
        for keys in [list(column.documents)]
        for start in range(0, len(keys), BLOCK)
    }


def _squeeze(value: Any) -> str:
    # Level 4 takes half the time of 6 for 2 % more.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=4, mtime=0)).decode("ascii")


def _estimate(columns: Sequence[tuple[str, Column]], level: tuple[int, int]) -> float:
    """About the size of all blocks, from a few of each column."""
    total = 0.0
    for _, column in columns:
        keys = list(column.documents)
        starts = list(range(0, len(keys), BLOCK))
        chosen = starts[:: max(1, len(starts) // _SAMPLED_BLOCKS)]
        sizes = [len(_squeeze(_texts(column, keys[start : start + BLOCK], level))) for start in chosen]
        total += sum(sizes) / len(sizes) * len(starts) if sizes else 0
    return total


def _core(board: Board, index: int) -> dict[str, Any]:
    return {
        "name": board.name,
        "metrics": board.metrics,
        "better": [board.higher_is_better[metric] for metric in board.metrics],
        "columns": [_column(column, f"{index}.{c}") for c, column in enumerate(board.columns)],
    }


def _column(column: Column, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "task": column.task,
        "rows": [
            {
                "model": row.result.model,
                "baseline": row.result.is_baseline,
                "signature": row.result.signature or "none",
                "problem": row.problem,
            }
            for row in column.rows
        ],
    }


def _data(column: Column, metrics: Sequence[str]) -> dict[str, Any]:
    """A column's lists: keys and queries of its documents, and for each row its scores and flags."""
    keys = list(column.documents)
    queries = [document.query for document in column.documents.values()]
    return {
        "keys": keys,
        "queries": [_cut(query, QUERY_CHARS) for query in queries],
        "cut": any(len(query) > QUERY_CHARS for query in queries),
        "scores": [[_integers(row, metric, keys) for metric in metrics] for row in column.rows],
        "flags": [flags_of(row, keys) for row in column.rows],
    }


def _integers(row: Row, metric: str, keys: Sequence[int | str]) -> list[int | None] | None:
    if metric not in row.scores.values:
        return None
    return [None if math.isnan(v) else round(v * UNIT) for v in over_all(row, metric, keys).tolist()]


def _texts(column: Column, keys: Sequence[int | str], level: tuple[int, int]) -> dict[str, Any]:
    """Texts of documents: [query, passages, reference, for each row [raw output, stripped answer (0: the same)]]."""
    passage_chars, output_chars = level
    places = [{key: i for i, key in enumerate(row.scores.keys)} for row in column.rows]
    texts: list[Any] = []
    for key in keys:
        document = column.documents[key]
        passages = [[_cut(title, passage_chars), _cut(text, passage_chars)] for title, text in document.passages]
        answers: list[Any] = []
        for row, place in zip(column.rows, places, strict=True):
            at = place.get(key)
            if at is None:
                answers.append(None)
                continue
            answer = row.answers[at]
            answers.append([_cut(row.outputs[at], output_chars), 0 if answer is None else _cut(answer, output_chars)])
        texts.append([document.query, passages, _cut(document.reference, output_chars), answers])
    return {"texts": texts}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
