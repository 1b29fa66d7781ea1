"""Recall of the relevant items within the first k."""

from __future__ import annotations

from qilin_tasks.metrics.hits import Floats, Hits


def recall(hits: Hits, k: float) -> Floats:
    """Hits within `k` / relevant, in [0, 1]; 0 without relevant items. One value a query.

    `relevant` counts qrels rows, duplicates and unranked ones included (the code of RED-Search/Qilin).
    """
    return hits.share_of(hits.within(k), hits.relevant)


def success(hits: Hits, k: float) -> Floats:
    """1 if a hit lies within `k`, else 0: what ReQA and MrRank call R@k; trec_eval's `success`."""
    return (hits.first <= k).astype("float64")
