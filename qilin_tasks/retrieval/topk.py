"""The best documents of many queries while the corpus goes by in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import SettingError

_POWERS = 10 ** np.arange(19, dtype=np.int64)
_LEAST = float(np.nextafter(np.float32(0), np.float32(1)))


def text_sort_keys(ids: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Keys for `np.lexsort`, least significant first, that order ids as text does: 1, 10, 2."""
    if ids.dtype.kind not in "iu":
        return (ids,)
    if len(ids) and ids.min() < 0:
        return (ids.astype(np.str_),)
    digits = np.searchsorted(_POWERS, ids, side="right")
    return digits, ids * _POWERS[18 - np.minimum(digits, 18)]


def order_by_score(scores: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.int64]:
    """Positions by score, greatest first, equal scores by id as text (as Anserini orders them)."""
    return np.asarray(np.lexsort((*text_sort_keys(ids), -scores)))


class TopK:
    """Keeps at most `k` (score, id) for each of `queries`, whatever the order in which they come."""

    def __init__(self, queries: int, *, k: int, least: float | NDArray[np.float64] = _LEAST) -> None:
        """`least` is the lowest score to keep, for all queries or one for each."""
        if k < 1:
            raise SettingError(f"top-k {k}: choose a number of documents from 1")
        self.k = k
        self._least = np.broadcast_to(np.asarray(least, dtype=np.float64), queries)
        self._scores: list[NDArray[np.float32] | None] = [None] * queries
        self._ids: list[NDArray[Any] | None] = [None] * queries

    def threshold(self, query: int) -> float:
        """Scores below this can't enter any more; equal ones can, by their id."""
        scores = self._scores[query]
        return float(self._least[query] if scores is None or len(scores) < self.k else scores[-1])

    def thresholds(self) -> NDArray[np.float64]:
        """`threshold` of all queries."""
        return np.array([self.threshold(query) for query in range(len(self._scores))], dtype=np.float64)

    def add(self, query: int, scores: NDArray[np.float32], ids: NDArray[Any]) -> None:
        """Offers documents that were not offered before."""
        kept_scores, kept_ids = self._scores[query], self._ids[query]
        if len(scores) > self.k:
            worst = np.partition(scores, len(scores) - self.k)[len(scores) - self.k]
            enough = scores >= worst
            scores, ids = scores[enough], ids[enough]
        if kept_scores is not None and kept_ids is not None:
            scores, ids = np.concatenate([kept_scores, scores]), np.concatenate([kept_ids, ids])
        order = order_by_score(scores, ids)[: self.k]
        self._scores[query], self._ids[query] = scores[order], ids[order]

    def merge(self, other: TopK) -> None:
        """Adds what another has kept of other documents for the same queries."""
        for query, (scores, ids) in enumerate(zip(other._scores, other._ids, strict=True)):
            if scores is not None and ids is not None:
                self.add(query, scores, ids)

    def rankings(self) -> list[list[tuple[Any, float]]]:
        """(id, score) of each query, best first."""
        return [
            []
            if scores is None or ids is None
            else list(zip(ids.tolist(), scores.astype(np.float64).tolist(), strict=True))
            for scores, ids in zip(self._scores, self._ids, strict=True)
        ]
