"""Per-document scores of a result as arrays, and the short table that a comparison ends with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from qilin_tasks.families import notes
from qilin_tasks.results.reader import Sample, TaskResult, iter_samples
from qilin_tasks.results.stats import UNBOUNDED, Floats, Interval, Range, mean_interval

#: Documents with the same value here are not independent: errors are clustered by it.
CLUSTER_KEYS = ("cluster", "paragraph")


@dataclass(frozen=True, eq=False)
class Scores:
    """A result's documents in file order: `values[metric]` has one entry a document, NaN where a metric is absent."""

    result: TaskResult
    keys: list[int | str]
    clusters: list[Hashable] | None
    values: dict[str, Floats]

    def interval(self, metric: str, *, bounds: Range = UNBOUNDED) -> Interval:
        """Mean, clustered standard error and 95 % interval of a metric, over the documents that have a value of it."""
        there = ~np.isnan(self.values[metric])
        clusters = self.clusters and [cluster for cluster, kept in zip(self.clusters, there, strict=True) if kept]
        return mean_interval(self.values[metric][there], clusters=clusters, bounds=bounds)

    @property
    def main_metric(self) -> str:
        """The first metric of the task: the one that tables show first."""
        return next(iter(self.values))


def cluster_of(sample: Sample) -> Hashable | None:
    """What a document shares with others (its paragraph), None where it stands alone."""
    for key in CLUSTER_KEYS:
        # Parsing a whole document costs far more than this look.
        if f'"{key}": '.encode() in sample.line and key in sample.doc:
            value: Hashable = sample.doc[key]
            return value
    return None


def collect(result: TaskResult, samples: Sequence[tuple[int | str, Hashable | None, dict[str, float]]]) -> Scores:
    """Arrays from (key, cluster, scores) of each document; every document of a filter counts once."""
    names = list(dict.fromkeys(name for _, _, scores in samples for name in scores))
    order = {key: i for i, key in enumerate(dict.fromkeys(key for key, _, _ in samples))}
    values = {name: np.full(len(order), np.nan) for name in names}
    clusters: list[Hashable | None] = [None] * len(order)
    for key, cluster, scores in samples:
        clusters[order[key]] = cluster
        for name, value in scores.items():
            values[name][order[key]] = value
    known = [c for c in clusters if c is not None]
    return Scores(result, list(order), known if len(known) == len(order) else None, values)


def load_scores(result: TaskResult) -> Scores:
    """Read a samples file's scores. Raises DataError where it is incomplete."""
    return collect(result, [(s.key, cluster_of(s), s.scores) for s in iter_samples(result)])


def short_table(scores: Sequence[Scores]) -> str:
    """Models by tasks as text: the main metric of each task with its standard error, and the families' notes."""
    tasks = list(dict.fromkeys(s.result.task for s in scores))
    models = list(dict.fromkeys(s.result.model for s in scores))
    cells = {}
    metrics = {}
    for one in scores:
        interval = one.interval(one.main_metric)
        cells[one.result.model, one.result.task] = f"{interval.value:.4f} ± {interval.se:.4f}"
        metrics[one.result.task] = f"{one.result.task} ({one.main_metric})"
    rows = [["model", *(metrics[task] for task in tasks)]]
    rows += [[model, *(cells.get((model, task), "-") for task in tasks)] for model in models]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *notes(one.result.parts.get("family", "") for one in scores)])
