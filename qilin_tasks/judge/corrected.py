"""Means of a judge's scores, corrected by a few people's labels: prediction-powered inference.

Angelopoulos et al. 2023 (Science 382, arXiv 2301.09633), algorithm 1: the judge's mean over the answers without
labels, plus the mean of label minus judge over those with one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from qilin_tasks.errors import SettingError
from qilin_tasks.results.stats import UNBOUNDED, Interval, Range, mean_interval, student_t, within


def corrected_mean(
    judged: ArrayLike,
    *,
    labelled_judged: ArrayLike,
    labels: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    labelled_clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    bounds: Range = UNBOUNDED,
) -> Interval:
    """The mean label of all answers, with its standard error and interval; `n` all answers, `clusters` the labels.

    `judged` are the judge's scores of the answers without labels, the others those with one. The labelled answers must
    be a random sample. Student's t with Welch's degrees of freedom stands for the paper's normal, which is too narrow
    for few labels. Raises SettingError for fewer than two of either kind, and for fewer than two clusters.
    """
    rest, seen, people = (np.asarray(values, dtype=np.float64) for values in (judged, labelled_judged, labels))
    if len(rest) < 2 or len(people) < 2 or len(seen) != len(people):
        raise SettingError(
            f"{len(people)} labels for {len(seen)} judged answers and {len(rest)} without labels: two of each are "
            "needed"
        )
    parts = [mean_interval(rest, clusters=clusters), mean_interval(people - seen, clusters=labelled_clusters)]
    if min(part.clusters for part in parts) < 2:
        raise SettingError("labels, or answers without labels, of one cluster alone say nothing of the spread")
    variance = sum(part.se**2 for part in parts)
    below = sum(part.se**4 / (part.clusters - 1) for part in parts)
    freedom = variance**2 / below if below > 0 else parts[1].clusters - 1
    value, se = sum(part.value for part in parts), variance**0.5
    half = student_t(level=level, df=max(1, int(freedom))) * se
    return Interval(value, se, *within(value - half, value + half, bounds), len(rest) + len(people), parts[1].clusters)
