"""Reciprocal rank."""

from __future__ import annotations

import math
from collections.abc import Sequence


def reciprocal_rank(hits: Sequence[float], *, k: float = math.inf) -> float:
    """1 / rank of the first hit within `k`, in [0, 1]; 0 without one. `hits`: ascending 1-based ranks.

    Ranks may be fractions (ReQA averages ties). As Qilin's and ReQA's code and trec_eval's `recip_rank`.
    """
    return 1.0 / hits[0] if hits and hits[0] <= k else 0.0
