"""Rows of `search_test` and `recommendation_test` to requests: who was shown what, and what was clicked."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.sources.schema import DETAILS_COLUMNS

logger = logging.getLogger(__name__)

EXPOSED = {"search_test": "search_results", "recommendation_test": "rec_results"}
DETAILS = {config: DETAILS_COLUMNS[config] for config in ("search_test", "recommendation_test", "dqa")}
REQUEST_ID = {"search_test": "search_idx", "recommendation_test": "request_idx"}


@dataclass(frozen=True)
class Request:
    """One row. `candidates` are distinct and ascending, `clicked` distinct; `n_clicks` counts the clicked impressions.

    `n_clicks` is what the official code divides by: a repeated or unranked clicked impression counts.
    """

    row: int
    request_id: int
    query: str | None
    history: tuple[int, ...]
    candidates: tuple[int, ...]
    clicked: frozenset[int]
    n_clicks: int


@dataclass
class Left:
    """How many of the rows were left out, and how many ids were repeated."""

    rows: int = 0
    without_clicks: int = 0
    without_candidates: int = 0
    repeated_ids: int = 0

    def __str__(self) -> str:
        return (
            f"of {self.rows} rows, {self.without_clicks} have no click and {self.without_candidates} no candidate (no "
            f"metric is defined for them); {self.repeated_ids} repeated candidates were dropped"
        )


def read_requests(source: QilinSource, config: str, *, rows: int | None) -> list[Request]:
    """The requests among the first `rows` rows (None: all) that have candidates and a click, in row order.

    Raises DataError where none is left, or where ids lie outside the notes table.
    """
    exposed, details = EXPOSED[config], DETAILS[config]
    columns = [REQUEST_ID[config], "query", "recent_clicked_note_idxs", details]
    has_exposed = exposed in source.columns(config)
    read = source.rows(config, [*columns, exposed] if has_exposed else columns, limit=rows)
    source.check_note_ids(config, read, [exposed, details, "recent_clicked_note_idxs"])
    left = Left(rows=len(read))
    requests = []
    for row in read:
        clicked = clicked_notes(row[details])
        listed = (row[exposed] if has_exposed else None) or [impression["note_idx"] for impression in row[details]]
        candidates = tuple(sorted(set(listed)))
        left.repeated_ids += len(listed) - len(candidates)
        if not candidates:
            left.without_candidates += 1
        elif not clicked:
            left.without_clicks += 1
        else:
            requests.append(
                Request(
                    row=row["row"],
                    request_id=row[REQUEST_ID[config]],
                    query=row["query"],
                    history=tuple(dict.fromkeys(row["recent_clicked_note_idxs"] or ())),
                    candidates=candidates,
                    clicked=frozenset(clicked),
                    n_clicks=len(clicked),
                )
            )
    if left.without_clicks or left.without_candidates or left.repeated_ids:
        logger.warning("%s of %s: %s", config, source.name, left)
    if not requests:
        raise DataError(f"{source.name}: no request of {config!r} can be ranked: {left}")
    return requests


def clicked_notes(details: Iterable[Mapping[str, Any]] | None) -> list[int]:
    """The clicked notes of an impression list, in its order; a note that was shown and clicked twice comes twice."""
    return [impression["note_idx"] for impression in details or () if impression["click"] > 0]


def labels(source: QilinSource, config: str, *, rows: int | None = None) -> tuple[list[int], list[int]]:
    """Columns (row number, clicked note) of the first rows of a config: qrels, as the official files have them."""
    if config not in DETAILS:
        raise unknown("config", config, DETAILS)
    queries, notes = [], []
    for row in source.rows(config, [DETAILS[config]], limit=rows):
        clicked = clicked_notes(row[DETAILS[config]])
        queries += [row["row"]] * len(clicked)
        notes += clicked
    return queries, notes


def shuffled(ids: Sequence[int], *, seed: int, key: object) -> list[int]:
    """The ids in an order that depends on `seed` and `key` only, not on the order they come in."""
    order = sorted(ids)
    random.Random(f"candidates|{seed}|{key}").shuffle(order)  # noqa: S311
    return order
