"""Normalised discounted cumulative gain with binary gains."""

from __future__ import annotations

import math
from collections.abc import Sequence


def ndcg(hits: Sequence[int], *, relevant: int, k: int) -> float:
    """DCG@k / ideal DCG@k with gain 1 and discount log2(rank + 1), in [0, 1]; 0 without relevant items.

    `hits`: ascending 1-based ranks; `relevant`: all relevant items, unranked ones included. As trec_eval's
    `ndcg_cut` (Järvelin and Kekäläinen 2002).
    """
    if relevant <= 0:
        return 0.0
    gained = sum(1.0 / math.log2(rank + 1) for rank in hits if rank <= k)
    return gained / sum(1.0 / math.log2(rank + 1) for rank in range(1, min(relevant, k) + 1))
