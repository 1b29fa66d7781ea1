"""Average precision, as Qilin's official code divides it and as the paper's formula (7) writes it."""

from __future__ import annotations

import numpy as np

from qilin_tasks.metrics.hits import Floats, Hits


def average_precision(hits: Hits, k: int) -> Floats:
    """Sum of the precisions at the hits within `k` / min(relevant, k), in [0, 1]; 0 without relevant items.

    One value a query; `relevant` counts qrels rows, duplicates and unranked ones included. Source: the evaluation code
    of RED-Search/Qilin. trec_eval's `map_cut` divides by `relevant` instead.
    """
    return hits.share_of(_precision_sum(hits, k), np.minimum(hits.relevant, k))


def average_precision_paper(hits: Hits, k: int) -> Floats:
    """Sum of the precisions at the hits within `k` / relevant, in [0, 1]; 0 without relevant items.

    Source: formula (7) of arXiv 2503.00501; equals trec_eval's `map_cut`. Can't reach 1 when relevant > k.
    """
    return hits.share_of(_precision_sum(hits, k), hits.relevant)


def _precision_sum(hits: Hits, k: int) -> Floats:
    return hits.sums(hits.found / hits.rank * (hits.rank <= k))
