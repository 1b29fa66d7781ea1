"""Ranks by ReQA's official evaluation: 1-based, ties averaged, the best entry counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def best_rank(scores: Scores, relevant: Sequence[int]) -> float:
    """The best rank among the relevant positions, from 1 (highest score) to len(scores); ties get their mean rank.

    Equal scores for all n entries give (n + 1) / 2, whatever is relevant. `relevant` must not be empty.

    >>> import numpy as np
    >>> best_rank(np.array([0.2, 0.9, 0.9]), [1])
    1.5
    """
    best = scores[list(relevant)].max()
    above = int(np.count_nonzero(scores > best))
    equal = int(np.count_nonzero(scores == best))
    return above + (equal + 1) / 2


def document_scores(scores: Scores, owners: NDArray[np.int64]) -> Scores:
    """Each document's best candidate score, shape (documents,); `owners[i]` is the document of candidate i."""
    best = np.full(int(owners.max()) + 1, -np.inf)
    np.maximum.at(best, owners, scores)
    return best
