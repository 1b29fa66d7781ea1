"""Which end of `recent_clicked_note_idxs` is the recent one, read from a user's successive requests.

The description of the release gives no order ("20 recently clicked note ids"). Between two requests of a user the list
moves: what was clicked in between enters at the recent end and pushes the rest on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from qilin_tasks.ranking.requests import DETAILS
from qilin_tasks.sources.qilin import QilinSource

#: Fewer notes in common are taken for chance.
LEAST_COMMON = 3
STAMPS = {"search_test": "search_timestamp", "recommendation_test": "request_timestamp"}


@dataclass(frozen=True)
class HistoryOrder:
    """Pairs of successive requests whose lists moved so that the first, or the last, notes are the recent ones."""

    first: int
    last: int

    @property
    def recent(self) -> str:
        """`first` or `last` where nine of ten pairs say so, else `unknown`."""
        told = self.first + self.last
        for name, number in (("first", self.first), ("last", self.last)):
            if told and number >= 0.9 * told:
                return name
        return "unknown"


def moved_to_front(older: Sequence[int], newer: Sequence[int]) -> bool:
    """Whether `newer` is `older` with other notes put before it, of which the end may have been cut off.

    >>> moved_to_front([3, 2, 1], [5, 4, 3, 2]), moved_to_front([1, 2, 3], [2, 3, 4])
    (False, False)
    >>> moved_to_front([4, 3, 2, 1], [5, 4, 3, 2])
    True
    """
    for entered in range(1, len(newer) - LEAST_COMMON + 1):
        common = min(len(older), len(newer) - entered)
        # What is cut off at the end of the newer list is its own limit: nothing of the older may stand behind it.
        if common >= LEAST_COMMON and list(newer[entered:]) == list(older[:common]):
            return True
    return False


def history_order(histories: Iterable[Sequence[Sequence[int]]]) -> HistoryOrder:
    """Counts over users, whose lists come in the order of their requests; pairs that fit neither end say nothing."""
    first = last = 0
    for lists in histories:
        for older, newer in pairwise(lists):
            front = moved_to_front(older, newer)
            back = moved_to_front(older[::-1], newer[::-1])
            first += front and not back
            last += back and not front
    return HistoryOrder(first, last)


def read_history_order(source: QilinSource, config: str, *, rows: int | None = None) -> HistoryOrder:
    """The order in the first `rows` rows of a config (None: all)."""
    users: dict[Any, list[tuple[float, int, list[int]]]] = defaultdict(list)
    for row in source.rows(config, ["user_idx", "recent_clicked_note_idxs", DETAILS[config]], limit=rows):
        if row["recent_clicked_note_idxs"]:
            stamp = _stamp(row[DETAILS[config]], STAMPS[config])
            users[row["user_idx"]].append((stamp, row["row"], list(row["recent_clicked_note_idxs"])))
    return history_order([clicked for _, _, clicked in sorted(requests)] for requests in users.values())


def _stamp(details: Iterable[Mapping[str, Any]] | None, name: str) -> float:
    """When the request's first note was shown; 0 where that isn't known, so that the row number decides."""
    return min((float(each[name]) for each in details or () if each.get(name)), default=0.0)
