"""Several answers to one request: each is scored, a document counts with their mean, and the variance is split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from qilin_tasks.family import Document, Scorer
from qilin_tasks.metrics.own import OwnMetric


class Scores(Protocol):
    """What `score_repeats` needs of a scorer."""

    def score(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]: ...


class WithOwn:
    """A family's scorer with a user's own metrics behind its own; `target` gives a document's reference."""

    def __init__(
        self, scorer: Scorer[Any, Any], own: Mapping[str, OwnMetric], target: Callable[[Document], Any]
    ) -> None:
        self.scorer, self.own, self.target = scorer, own, target

    def score(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
        """As `Scorer.score`."""
        rows = self.scorer.score(docs, responses)
        if self.own:
            references = [self.target(doc) for doc in docs]
            answers = [[self.scorer.shown(response) for response in given] for given in responses]
            for name, metric in self.own.items():
                for row, value in zip(rows, metric.score(docs, references, answers), strict=True):
                    row[name] = value
        return rows


@dataclass(frozen=True)
class Repeated:
    """Values of each document (the mean over its repeats), and how they spread.

    `variance` is None for one repeat; else by metric `within` (mean over documents of the variance of its repeats) and
    `between` (variance of the documents' means, the sampling of answers included), with `repeats`.
    """

    values: list[dict[str, float]]
    variance: dict[str, Any] | None


def score_repeats(scorer: Scores, docs: Sequence[Document], responses: Sequence[Sequence[Sequence[Any]]]) -> Repeated:
    """Score `responses[i][q][r]`, repeat r of request q of document i; all requests have the same repeats."""
    repeats = len(responses[0][0]) if responses and responses[0] else 1
    runs = [
        scorer.score(docs, [[request[repeat] for request in requests] for requests in responses])
        for repeat in range(repeats)
    ]
    if repeats == 1:
        return Repeated(runs[0], None)
    values: list[dict[str, float]] = [{} for _ in docs]
    variance: dict[str, Any] = {"repeats": repeats, "within": {}, "between": {}}
    for name in dict.fromkeys(name for row in runs[0] for name in row):
        # Which documents a metric counts is the documents' own: the same in every repeat.
        counted = [place for place, row in enumerate(runs[0]) if name in row]
        table = np.array([[run[place][name] for place in counted] for run in runs])
        means = table.mean(axis=0)
        variance["within"][name] = float(table.var(axis=0, ddof=1).mean())
        variance["between"][name] = float(means.var(ddof=1)) if len(counted) > 1 else 0.0
        for place, mean in zip(counted, means.tolist(), strict=True):
            values[place][name] = mean
    return Repeated(values, variance)
