"""Reciprocal rank."""

from __future__ import annotations

import math

from qilin_tasks.metrics.hits import Floats, Hits


def reciprocal_rank(hits: Hits, k: float = math.inf) -> Floats:
    """1 / rank of the first hit within `k`, in [0, 1]; 0 without one. One value a query.

    Ranks may be fractions (ReQA averages ties). As Qilin's and ReQA's code and trec_eval's `recip_rank`.
    """
    return (hits.first <= k) / hits.first
