"""The table of ranking metrics, and values from it: shared by Qilin's tasks, ReQA and `score`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from qilin_tasks.errors import unknown
from qilin_tasks.metrics.average_precision import average_precision, average_precision_paper
from qilin_tasks.metrics.hits import Floats, Hits, hit_ranks
from qilin_tasks.metrics.ndcg import ndcg
from qilin_tasks.metrics.precision import precision
from qilin_tasks.metrics.recall import recall, success
from qilin_tasks.metrics.reciprocal_rank import reciprocal_rank

Item = TypeVar("Item", bound=Hashable)
RankingMetric = Callable[[Hits, int], Floats]
"""(hits of all queries, cutoff k) -> one value in [0, 1] a query."""

RANKING_METRICS: dict[str, RankingMetric] = {
    "mrr": reciprocal_rank,
    "map": average_precision,
    "map_paper": average_precision_paper,
    "recall": recall,
    "precision": precision,
    "ndcg": ndcg,
    "success": success,
}

QILIN_MEASURES = (
    "mrr@10",
    "mrr@100",
    "map@10",
    "map@100",
    "recall@10",
    "ndcg@10",
    "map_paper@10",
    "map_paper@100",
)


def parse_measure(measure: str) -> tuple[str, int]:
    """`"map_paper@100"` -> `("map_paper", 100)`; SettingError for an unknown name or a cutoff that isn't >= 1."""
    name, _, cutoff = measure.partition("@")
    if name not in RANKING_METRICS:
        raise unknown("ranking metric", measure, (f"{known}@K" for known in RANKING_METRICS))
    if not (cutoff.isascii() and cutoff.isdigit() and int(cutoff) >= 1):
        raise unknown("cutoff of ranking metric", measure, (f"{name}@10", f"{name}@100"))
    return name, int(cutoff)


def score_hits(hits: Hits, measures: Sequence[str]) -> dict[str, Floats]:
    """By measure one value a query."""
    return {measure: RANKING_METRICS[name](hits, k) for measure in measures for name, k in [parse_measure(measure)]}


def score_ranking(
    ranking: Iterable[Hashable],
    relevant: Collection[Hashable],
    *,
    measures: Sequence[str] = QILIN_MEASURES,
    n_relevant: int | None = None,
) -> dict[str, float]:
    """One query's values by measure. `ranking`: distinct items, best first; `relevant`: the relevant items.

    `n_relevant`: their number where it isn't `len(relevant)` (Qilin counts qrels rows, duplicates included).

    >>> score_ranking(["c", "a", "b"], {"a"}, measures=["mrr@10", "recall@1"])
    {'mrr@10': 0.5, 'recall@1': 0.0}
    """
    hits = Hits.of([hit_ranks(ranking, relevant)], [len(relevant) if n_relevant is None else n_relevant])
    return {measure: float(values[0]) for measure, values in score_hits(hits, measures).items()}


def repair(ranked: Iterable[Item], shown: Iterable[Item]) -> list[Item]:
    """The ranked items, then the rest of `shown` in shown order: a ranking of all candidates.

    `shown` has to be shuffled, or the repair would hand a model the order of exposure.
    """
    return list(dict.fromkeys([*ranked, *shown]))
