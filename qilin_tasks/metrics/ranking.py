"""The table of ranking metrics, and one query's scores from it: shared by Qilin's tasks, ReQA and `score`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from qilin_tasks.errors import unknown
from qilin_tasks.metrics.average_precision import average_precision, average_precision_paper
from qilin_tasks.metrics.hit_ranks import hit_ranks
from qilin_tasks.metrics.ndcg import ndcg
from qilin_tasks.metrics.precision import precision
from qilin_tasks.metrics.recall import recall, success
from qilin_tasks.metrics.reciprocal_rank import reciprocal_rank

Item = TypeVar("Item", bound=Hashable)
RankingMetric = Callable[[Sequence[int], int, int], float]
"""(ascending 1-based ranks of the hits, number of relevant items, cutoff k) -> value in [0, 1]."""

RANKING_METRICS: dict[str, RankingMetric] = {
    "mrr": lambda hits, relevant, k: reciprocal_rank(hits, k=k),
    "map": lambda hits, relevant, k: average_precision(hits, relevant=relevant, k=k),
    "map_paper": lambda hits, relevant, k: average_precision_paper(hits, relevant=relevant, k=k),
    "recall": lambda hits, relevant, k: recall(hits, relevant=relevant, k=k),
    "precision": lambda hits, relevant, k: precision(hits, k=k),
    "ndcg": lambda hits, relevant, k: ndcg(hits, relevant=relevant, k=k),
    "success": lambda hits, relevant, k: success(hits, k=k),
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


def score_ranking(
    ranking: Iterable[Hashable],
    relevant: Collection[Hashable],
    *,
    measures: Sequence[str] = QILIN_MEASURES,
    n_relevant: int | None = None,
) -> dict[str, float]:
    """One query's values by measure. `ranking`: distinct items, best first; `relevant`: the relevant items.

    `n_relevant`: their number where it isn't `len(relevant)` (Qilin counts qrels rows, duplicates included).
    """
    return score_hits(
        hit_ranks(ranking, relevant),
        relevant=len(relevant) if n_relevant is None else n_relevant,
        measures=measures,
    )


def score_hits(hits: Sequence[int], *, relevant: int, measures: Sequence[str]) -> dict[str, float]:
    """One query's values by measure from the ascending 1-based ranks of its hits."""
    values = {}
    for measure in measures:
        name, k = parse_measure(measure)
        values[measure] = RANKING_METRICS[name](hits, relevant, k)
    return values


def repair(ranked: Iterable[Item], shown: Iterable[Item]) -> list[Item]:
    """The ranked items, then the rest of `shown` in shown order: a ranking of all candidates.

    `shown` has to be shuffled, or the repair would hand a model the order of exposure.
    """
    return list(dict.fromkeys([*ranked, *shown]))
