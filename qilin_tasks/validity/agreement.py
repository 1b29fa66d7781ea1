"""Spearman's correlation of metrics with people's labels, with intervals over resampled pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qilin_tasks.results.stats import percentile_interval
from qilin_tasks.validity.labels import Label
from qilin_tasks.validity.scores import Floats, Score, combine

RESAMPLES = 1000
SEED = 0


class Agreement(NamedTuple):
    """`spearman` with its 95 % interval, and the difference from the baseline's (None for the baseline itself)."""

    spearman: float
    low: float
    high: float
    minus_baseline: tuple[float, float, float] | None


def columns(labels: Sequence[Label], scores: Mapping[str, Score]) -> dict[str, Floats]:
    """Each metric's value a row: of the answer, less that of the other answer where there is one."""
    first = {(label.answer, label.reference): 0 for label in labels}
    first |= {(label.other, label.reference): 0 for label in labels if label.other is not None}
    pairs = list(first)
    place = {pair: number for number, pair in enumerate(pairs)}
    answers, references = [answer for answer, _ in pairs], [reference for _, reference in pairs]
    ours = [place[label.answer, label.reference] for label in labels]
    theirs = [place[label.other, label.reference] for label in labels if label.other is not None]
    found = {}
    for name, score in scores.items():
        values = np.asarray(score(answers, references), dtype=np.float64)
        found[name] = values[ours] - values[theirs] if theirs else values[ours]
    return found


def _spearman(columns: Floats, labels: Floats) -> Floats:
    """Of each column (rows, metrics) with the labels (rows,); 0 where either is constant."""
    from scipy.stats import rankdata

    ranks = rankdata(np.column_stack([columns, labels]), axis=0)
    ranks -= ranks.mean(axis=0)
    spread = np.sqrt((ranks**2).sum(axis=0))
    below = spread[:-1] * spread[-1]
    return np.asarray(np.divide(ranks[:, :-1].T @ ranks[:, -1], below, out=np.zeros(len(below)), where=below > 0))


def agreement(
    labels: Sequence[Label], scores: Mapping[str, Score], *, names: Sequence[str], baseline: str
) -> dict[str, Agreement]:
    """Each name's agreement over all rows of labels, intervals from 1,000 seeded resamples of whole pairs.

    All metrics share each resample, so that differences are paired.
    """
    values = columns(labels, scores)
    matrix = np.column_stack([combine(name, values) for name in names])
    wanted = np.array([label.label for label in labels])
    observed = _spearman(matrix, wanted)
    rows: dict[str, list[int]] = defaultdict(list)
    for number, label in enumerate(labels):
        rows[label.pair].append(number)
    clusters = [np.array(some) for some in rows.values()]
    random = np.random.default_rng(SEED)
    resampled = np.empty((RESAMPLES, len(names)))
    for number in range(RESAMPLES):
        drawn = np.concatenate([clusters[i] for i in random.integers(0, len(clusters), len(clusters))])
        resampled[number] = _spearman(matrix[drawn], wanted[drawn])
    base = list(names).index(baseline) if baseline in names else None
    found = {}
    for column, name in enumerate(names):
        difference = None
        if base is not None and column != base:
            low, high = percentile_interval(resampled[:, column] - resampled[:, base], units=len(clusters))
            difference = (float(observed[column] - observed[base]), low, high)
        found[name] = Agreement(
            float(observed[column]), *percentile_interval(resampled[:, column], units=len(clusters)), difference
        )
    return found


def people(labels: Sequence[Label]) -> float | None:
    """Spearman of the first with the second label of each pair; None where fewer than three pairs have two."""
    by_pair: dict[str, list[float]] = defaultdict(list)
    for label in labels:
        by_pair[label.pair].append(label.label)
    both = np.array([some[:2] for some in by_pair.values() if len(some) > 1])
    return float(_spearman(both[:, :1], both[:, 1])[0]) if len(both) > 2 else None
