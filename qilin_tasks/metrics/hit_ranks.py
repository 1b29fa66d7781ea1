"""Where a ranking holds relevant items: the one thing every binary ranking metric needs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable


def hit_ranks(ranking: Iterable[Hashable], relevant: Collection[Hashable]) -> tuple[int, ...]:
    """1-based ranks of the relevant items in `ranking` (best first, distinct items), ascending; empty if none."""
    return tuple(rank for rank, item in enumerate(ranking, start=1) if item in relevant)
