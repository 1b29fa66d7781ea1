"""Normalised discounted cumulative gain with binary gains."""

from __future__ import annotations

import numpy as np

from qilin_tasks.metrics.hits import Floats, Hits


def ndcg(hits: Hits, k: int) -> Floats:
    """DCG@k / ideal DCG@k with gain 1 and discount log2(rank + 1), in [0, 1]; 0 without relevant items.

    One value a query; unranked relevant items count in the ideal. As trec_eval's `ndcg_cut` (Järvelin and Kekäläinen
    2002).
    """
    gained = hits.sums((hits.rank <= k) / np.log2(hits.rank + 1.0))
    ideal = np.cumsum(1.0 / np.log2(np.arange(2.0, min(k, int(hits.relevant.max(initial=1))) + 2.0)))
    return hits.share_of(gained, ideal[np.clip(hits.relevant, 1, k) - 1])
