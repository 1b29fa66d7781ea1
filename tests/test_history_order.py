"""Which end of the clicked notes is recent: planted either way it is found, and chance says nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ranking_folder import recommendation_row, write_ranking

from qilin_tasks.ranking.history_order import HistoryOrder, history_order, read_history_order
from qilin_tasks.sources.qilin import open_qilin


def lists_of(clicks: list[int], steps: list[int], *, limit: int, front: bool) -> list[list[int]]:
    """A user's list at each request: `steps[i]` more notes have been clicked by then."""
    made, at = [], 0
    for step in steps:
        at += step
        recent = clicks[max(0, at - limit) : at]
        made.append(recent[::-1] if front else recent)
    return made


@given(
    steps=st.lists(st.integers(1, 5), min_size=2, max_size=8),
    limit=st.integers(8, 20),
    front=st.booleans(),
)
def test_the_planted_end_is_found(steps: list[int], limit: int, front: bool) -> None:
    lists = lists_of(list(range(100, 200)), [8, *steps], limit=limit, front=front)
    found = history_order([lists])
    pairs = len(lists) - 1
    told = found.first if front else found.last
    assert (found.last if front else found.first) == 0
    assert told == sum(len(older) >= 3 and limit - step >= 3 for older, step in zip(lists, steps, strict=False))
    assert told == pairs and found.recent == ("first" if front else "last")


def test_unrelated_lists_and_unchanged_ones_say_nothing() -> None:
    chance = random.Random(0)
    lists = [chance.sample(range(1000), 20) for _ in range(50)]
    assert history_order([lists, [lists[0]] * 5]) == HistoryOrder(0, 0)
    assert HistoryOrder(0, 0).recent == "unknown"
    assert HistoryOrder(8, 2).recent == "unknown" and HistoryOrder(9, 1).recent == "first"


@pytest.mark.parametrize("front", [True, False])
def test_it_is_read_from_a_folder_by_user_and_time(front: bool, tmp_path: Path) -> None:
    rows = []
    for user in range(3):
        clicks = list(range(user * 10, user * 10 + 10))
        for step, clicked in enumerate(lists_of(clicks, [4, 2, 3], limit=6, front=front)):
            row = recommendation_row(len(rows), [1, 2], [1], user_idx=user, recent_clicked_note_idxs=clicked)
            for impression in row["rec_result_details_with_idx"]:
                impression["request_timestamp"] = 1000.0 + step
            rows.append(row)
    # The rows' order must not matter: a release may be shuffled.
    random.Random(1).shuffle(rows)
    folder = write_ranking(tmp_path, notes=40, recommendation=rows)
    found = read_history_order(open_qilin(str(folder)), "recommendation_test")
    assert found == (HistoryOrder(6, 0) if front else HistoryOrder(0, 6))
