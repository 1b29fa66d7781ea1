"""A list too long for one prompt: windows in which every two candidates meet, and the merge of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

MERGE = "pairs-1"
"""Name of the merge rule in signatures; bumped when the rule changes."""


def windows(n: int, *, size: int) -> list[list[int]]:
    """The ids 1..n in windows of at most `size` (at least 2), ascending in each; one window where they all fit.

    Longer lists are cut into groups of at most size // 2, and every two groups make a window, so every two ids share
    one. No window depends on the answer to another: all are asked in one pass.
    """
    if n <= size:
        return [list(range(1, n + 1))] if n else []
    count = -(-n // (size // 2))
    bounds = [round(i * n / count) for i in range(count + 1)]
    groups = [list(range(start + 1, end + 1)) for start, end in pairwise(bounds)]
    return [[*groups[i], *groups[j]] for i in range(count) for j in range(i + 1, count)]


def merge(rankings: Sequence[Sequence[int]], shown: Sequence[Sequence[int]], *, n: int) -> list[int]:
    """One ranking of the ids 1..n, best first, from one ranking per window; ids that no window ranked are left out.

    `shown[w]` are the ids of window w, `rankings[w]` distinct ids of them, best first. An id's score is the sum, over
    all others, of the share of their common windows in which it stands before the other (a ranked id stands before an
    unranked one); ties go to the lower id. A ranker with one order in mind gets exactly that order back.
    """
    if len(shown) == 1:
        return list(rankings[0])
    wins, meetings = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    for ranking, ids in zip(rankings, shown, strict=True):
        meetings[np.ix_(ids, ids)] += 1
        place = np.full(n + 1, len(ids))
        place[list(ranking)] = np.arange(len(ranking))
        wins[np.ix_(ids, ids)] += place[ids][:, None] < place[ids][None, :]
    score = np.divide(wins, meetings, out=np.zeros_like(wins), where=meetings > 0).sum(axis=1)
    ranked = sorted({i for ranking in rankings for i in ranking})
    return sorted(ranked, key=lambda i: -score[i])
