"""Where rankings hold relevant items: what every binary ranking metric reads, for many queries at once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hits:
    """The hits of all queries, by query and ascending rank; `relevant` has one entry a query.

    `query[i]` is the position of hit i's query, `rank[i]` its 1-based rank (a fraction where ties are averaged),
    `found[i]` which hit of its query it is, from 1. `relevant`: relevant items of each query, unranked ones included.
    """

    query: Ints
    rank: Floats
    found: Ints
    relevant: Ints

    @classmethod
    def of(cls, ranks: Sequence[Sequence[float]], relevant: Sequence[int]) -> Hits:
        """From the ascending 1-based ranks of each query's hits, and the number of its relevant items."""
        counts = np.fromiter(map(len, ranks), dtype=np.int64, count=len(ranks))
        starts = np.cumsum(counts) - counts
        total = int(counts.sum())
        return cls(
            query=np.repeat(np.arange(len(ranks)), counts),
            rank=np.fromiter(chain.from_iterable(ranks), dtype=np.float64, count=total),
            found=np.arange(total) - np.repeat(starts, counts) + 1,
            relevant=np.asarray(relevant, dtype=np.int64),
        )

    @classmethod
    def first_only(cls, ranks: Floats) -> Hits:
        """From the rank of each query's first hit, infinity where it has none; one relevant item each."""
        queries = np.flatnonzero(np.isfinite(ranks))
        return cls(queries, ranks[queries], np.ones(len(queries), np.int64), np.ones(len(ranks), np.int64))

    def sums(self, weights: Floats) -> Floats:
        """The sum of its hits' weights for each query; 0 without hits."""
        return np.bincount(self.query, weights=weights, minlength=len(self.relevant)).astype(np.float64)

    @cached_property
    def first(self) -> Floats:
        """The rank of each query's first hit, infinity without one."""
        ranks = np.full(len(self.relevant), np.inf)
        firsts = self.found == 1
        ranks[self.query[firsts]] = self.rank[firsts]
        return ranks

    def within(self, k: float) -> Floats:
        """How many hits of each query have a rank of at most `k`."""
        return self.sums((self.rank <= k).astype(np.float64))

    def share_of(self, totals: Floats, by: Ints | Floats) -> Floats:
        """`totals` / `by` for each query; 0 for a query without relevant items."""
        some = self.relevant > 0
        return np.divide(totals, by, out=np.zeros(len(totals)), where=some)


def hit_ranks(ranking: Iterable[Hashable], relevant: Collection[Hashable]) -> tuple[int, ...]:
    """1-based ranks of the relevant items in `ranking` (best first, distinct items), ascending; empty if none."""
    return tuple(rank for rank, item in enumerate(ranking, start=1) if item in relevant)
