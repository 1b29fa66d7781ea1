"""Routing, a baseline of MrRank: for each query the retriever that a small classifier picks."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.retrieval.rank_features import Ranking, query_features


@dataclass(frozen=True)
class Router:
    """Logistic regression over what the rankings of a query look like; one row of weights a retriever."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    depth: int

    def choose(self, rankings: Sequence[Ranking]) -> int:
        """The position of the ranking to trust. DataError for another number of rankings than trained on."""
        if len(rankings) != len(self.bias):
            raise DataError(
                f"this router was trained on {len(self.bias)} runs, not {len(rankings)}: pass the same retrievers' "
                "runs in the same order"
            )
        standard = (query_features(rankings, depth=self.depth) - self.mean) / self.deviation
        return int(np.argmax(self.weights @ standard + self.bias))

    def rank(self, rankings: Sequence[Ranking], *, k: int) -> list[tuple[Any, float]]:
        """The first `k` of the chosen ranking; where it is empty, of the first that isn't."""
        chosen = rankings[self.choose(rankings)] or next((ranking for ranking in rankings if ranking), ())
        return list(chosen[:k])


def reciprocal_rank(ranking: Ranking, wanted: AbstractSet[Any]) -> float:
    """1 / rank of the first relevant document, 0 without one."""
    return next((1 / rank for rank, (identifier, _) in enumerate(ranking, start=1) if identifier in wanted), 0.0)


def train_router(
    queries: Sequence[Sequence[Ranking]], relevant: Sequence[AbstractSet[Any]], *, depth: int, seed: int
) -> Router:
    """Learns which ranking has the first relevant document higher, each query weighted by what the choice matters.

    Queries on which all rankings do equally well teach nothing. DataError where that is true of all of them.
    """
    from sklearn.linear_model import LogisticRegression

    features, labels, stakes = [], [], []
    for rankings, wanted in zip(queries, relevant, strict=True):
        gains = [reciprocal_rank(ranking, wanted) for ranking in rankings]
        if max(gains) > min(gains):
            features.append(query_features(rankings, depth=depth))
            labels.append(int(np.argmax(gains)))
            stakes.append(max(gains) - min(gains))
    if not labels:
        raise DataError("on no query one run ranks a relevant document higher than another: there is nothing to learn")
    number = len(queries[0])
    matrix = np.array(features)
    mean, deviation = matrix.mean(0), matrix.std(0)
    deviation[deviation < 1e-9] = 1.0
    weights, bias = np.zeros((number, matrix.shape[1])), np.full(number, -np.inf)
    seen = sorted(set(labels))
    if len(seen) == 1:
        bias[seen[0]] = 0.0
    else:
        model = LogisticRegression(max_iter=1000, random_state=seed)
        model.fit((matrix - mean) / deviation, labels, sample_weight=stakes)
        # Two classes have one row of weights, for the second against the first.
        rows = model.coef_ if len(seen) > 2 else np.concatenate([np.zeros_like(model.coef_), model.coef_])
        offsets = model.intercept_ if len(seen) > 2 else np.array([0.0, float(model.intercept_[0])])
        for position, label in enumerate(seen):
            weights[label], bias[label] = rows[position], offsets[position]
    return Router(mean, deviation, weights, bias, depth)
