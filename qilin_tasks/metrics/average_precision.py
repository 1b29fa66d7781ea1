"""Average precision, as Qilin's official code divides it and as the paper's formula (7) writes it."""

from __future__ import annotations

from collections.abc import Sequence


def average_precision(hits: Sequence[int], *, relevant: int, k: int) -> float:
    """Sum of the precisions at the hits within `k` / min(relevant, k), in [0, 1]; 0 without relevant items.

    `hits`: ascending 1-based ranks; `relevant`: qrels rows of the query, duplicates and unranked ones included.
    Source: the evaluation code of RED-Search/Qilin. trec_eval's `map_cut` divides by `relevant` instead.
    """
    return _precision_sum(hits, k=k) / min(relevant, k) if relevant > 0 else 0.0


def average_precision_paper(hits: Sequence[int], *, relevant: int, k: int) -> float:
    """Sum of the precisions at the hits within `k` / relevant, in [0, 1]; 0 without relevant items.

    Source: formula (7) of arXiv 2503.00501; equals trec_eval's `map_cut`. Can't reach 1 when relevant > k.
    """
    return _precision_sum(hits, k=k) / relevant if relevant > 0 else 0.0


def _precision_sum(hits: Sequence[int], *, k: int) -> float:
    return sum(found / rank for found, rank in enumerate(hits, start=1) if rank <= k)
