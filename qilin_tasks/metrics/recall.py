"""Recall of the relevant items within the first k."""

from __future__ import annotations

from collections.abc import Sequence


def recall(hits: Sequence[float], *, relevant: int, k: float) -> float:
    """Hits within `k` / relevant, in [0, 1]; 0 without relevant items. `hits`: ascending 1-based ranks.

    `relevant`: qrels rows of the query, duplicates and unranked ones included (the code of RED-Search/Qilin).
    """
    return sum(rank <= k for rank in hits) / relevant if relevant > 0 else 0.0


def success(hits: Sequence[float], *, k: float) -> float:
    """1 if a hit lies within `k`, else 0: what ReQA and MrRank call R@k; trec_eval's `success`."""
    return float(bool(hits) and hits[0] <= k)
