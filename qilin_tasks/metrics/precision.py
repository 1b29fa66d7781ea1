"""Precision within the first k."""

from __future__ import annotations

from qilin_tasks.metrics.hits import Floats, Hits


def precision(hits: Hits, k: float) -> Floats:
    """Hits within `k` / k, in [0, 1], however short the ranking is. One value a query."""
    return hits.within(k) / k
