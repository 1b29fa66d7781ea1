"""What several rankings say about each document they name, and about their query, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.retrieval.fusion import min_max, z_score

PER_RANKING = (
    "min-max",
    "z-score",
    "1/rank",
    "10/(10+rank)",
    "log rank",
    "score",
    "below the best",
    "lead of the best",
)
Ranking = Sequence[tuple[Any, float]]


#: For `main`: no ranking bounds the pool.
NO_MAIN = -1


def document_features(
    rankings: Sequence[Ranking], *, depth: int, main: int = NO_MAIN
) -> tuple[list[Any], NDArray[np.float64]]:
    """The pool of ids (first `depth` of each ranking) and float64 features (pool, len(PER_RANKING) * rankings).

    With `main` the pool is that ranking's alone, and the others only say what they think of its documents. A document
    that a ranking lacks gets its least score and the rank behind its last; an empty ranking gives zeros.
    """
    cut = [_distinct(ranking[:depth]) for ranking in rankings]
    offered = cut if main == NO_MAIN else [cut[main]]
    pool = list(dict.fromkeys(identifier for ranking in offered for identifier in ranking))
    place = {identifier: position for position, identifier in enumerate(pool)}
    features = np.zeros((len(pool), len(PER_RANKING) * len(rankings)))
    for number, ranking in enumerate(cut):
        if not ranking:
            continue
        in_pool = [rank for rank, identifier in enumerate(ranking) if identifier in place]
        held = np.array([place[identifier] for identifier in ranking if identifier in place], dtype=np.int64)
        scores = np.array(list(ranking.values()), dtype=np.float64)
        ranks = np.full(len(pool), float(depth + 1))
        ranks[held] = np.array(in_pool, dtype=np.float64) + 1
        absent = np.ones(len(pool), dtype=np.bool_)
        absent[held] = False
        columns = [_spread(values, in_pool, held, len(pool)) for values in (min_max(scores), z_score(scores), scores)]
        raw = columns[2]
        lead = scores[0] - scores[1] if len(scores) > 1 else 0.0
        block = (
            np.where(absent, 0.0, columns[0]),
            columns[1],
            np.where(absent, 0.0, 1 / ranks),
            10 / (10 + ranks),
            np.log(ranks),
            raw,
            scores[0] - raw,
            np.full(len(pool), lead),
        )
        start = number * len(PER_RANKING)
        features[:, start : start + len(PER_RANKING)] = np.stack(block, axis=1)
    return pool, features


def query_features(rankings: Sequence[Ranking], *, depth: int) -> NDArray[np.float64]:
    """float64 (4 * rankings + pairs of rankings): best score, lead, spread, length; shared documents in the top ten."""
    values: list[float] = []
    tops: list[set[Any]] = []
    for ranking in rankings:
        scores = np.array(list(_distinct(ranking[:depth]).values()), dtype=np.float64)
        best = float(scores[0]) if len(scores) else 0.0
        lead = float(scores[0] - scores[1]) if len(scores) > 1 else 0.0
        values += [best, lead, float(scores.std()) if len(scores) else 0.0, len(scores) / depth]
        tops.append({identifier for identifier, _ in ranking[:10]})
    for first in range(len(tops)):
        values += [len(tops[first] & tops[second]) / 10 for second in range(first + 1, len(tops))]
    return np.array(values)


def _distinct(ranking: Ranking) -> dict[Any, float]:
    first: dict[Any, float] = {}
    for identifier, score in ranking:
        first.setdefault(identifier, score)
    return first


def _spread(
    values: NDArray[np.float64], in_pool: Sequence[int], held: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    spread = np.full(size, values.min())
    spread[held] = values[in_pool]
    return spread
