"""Precision within the first k."""

from __future__ import annotations

from collections.abc import Sequence


def precision(hits: Sequence[float], *, k: int) -> float:
    """Hits within `k` / k, in [0, 1], however short the ranking is. `hits`: ascending 1-based ranks."""
    return sum(rank <= k for rank in hits) / k
