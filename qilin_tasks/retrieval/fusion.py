"""Several rankings of one query into one: reciprocal rank fusion, and normalised scores in a weighted sum."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import SettingError, unknown

Id = TypeVar("Id", bound=Hashable)
Ranking = Sequence[tuple[Id, float]]


def by_score(scores: dict[Id, float], *, k: int) -> list[tuple[Id, float]]:
    """The `k` best (id, score), equal scores by id as text."""
    if k < 1:
        raise SettingError(f"top-k {k}: choose a number of documents from 1")
    return sorted(scores.items(), key=lambda item: (-item[1], str(item[0])))[:k]


def reciprocal_rank_fusion(rankings: Sequence[Ranking[Id]], *, k: int, constant: float = 60) -> list[tuple[Id, float]]:
    """Sum of 1 / (constant + rank) over the rankings (Cormack et al. 2009); a ranking without a document adds 0.

    `rankings` are best first; ids that occur twice in one keep their better rank. SettingError for constant <= 0.
    """
    if not constant > 0:
        raise SettingError(f"RRF constant {constant}: choose a number above 0 (the paper's is 60)")
    scores: dict[Id, float] = {}
    for ranking in rankings:
        for rank, identifier in enumerate(dict.fromkeys(identifier for identifier, _ in ranking), start=1):
            scores[identifier] = scores.get(identifier, 0.0) + 1 / (constant + rank)
    return by_score(scores, k=k)


def min_max(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores to 0..1; equal scores to 1, as each is the best."""
    low, high = scores.min(), scores.max()
    # Halves first: the difference of two huge numbers of opposite sign is no number.
    width = high / 2 - low / 2
    return np.ones_like(scores) if width == 0 else np.clip((scores / 2 - low / 2) / width, 0, 1)


def z_score(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as deviations from their mean in standard deviations; equal scores to 0."""
    scale = np.abs(scores).max() or 1.0
    scaled = scores / scale
    deviation = scaled.std()
    return np.zeros_like(scores) if deviation < 1e-12 else (scaled - scaled.mean()) / deviation


NORMALISATIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "min-max": min_max,
    "z-score": z_score,
    "none": lambda scores: scores,
}


def weighted_sum(
    rankings: Sequence[Ranking[Id]], *, weights: Sequence[float], k: int, normalisation: str = "min-max"
) -> list[tuple[Id, float]]:
    """Weighted sum of normalised scores; a document that a ranking lacks gets that ranking's least value.

    `weights` has one finite number >= 0 a ranking, not all 0. Raises SettingError otherwise.
    """
    if normalisation not in NORMALISATIONS:
        raise unknown("normalisation", normalisation, NORMALISATIONS)
    check_weights(weights, number=len(rankings))
    pool = dict.fromkeys(identifier for ranking in rankings for identifier, _ in ranking)
    totals = dict.fromkeys(pool, 0.0)
    for ranking, weight in zip(rankings, weights, strict=True):
        if not ranking:
            continue
        first: dict[Id, float] = {}
        for identifier, score in ranking:
            first.setdefault(identifier, score)
        values = NORMALISATIONS[normalisation](np.array(list(first.values()), dtype=np.float64)).tolist()
        held = dict(zip(first, values, strict=True))
        least = min(values)
        for identifier in totals:
            totals[identifier] += weight * held.get(identifier, least)
    return by_score(totals, k=k)


def check_weights(weights: Sequence[float], *, number: int) -> None:
    """Raises SettingError unless there is one weight a ranking, none negative, not all 0."""
    if len(weights) != number:
        raise SettingError(f"{len(weights)} weights for {number} rankings: give one for each")
    if any(not np.isfinite(weight) or weight < 0 for weight in weights) or not sum(weights) > 0:
        raise SettingError(f"weights {list(weights)}: choose numbers from 0, at least one above 0")
