"""How far two judges agree: Cohen's kappa of verdicts, Spearman's correlation of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np


def kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa (1960): agreement beyond chance, at most 1; None without pairs, or with one verdict only."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} verdicts against {len(second)}")
    n = len(first)
    if not n:
        return None
    ours, theirs = Counter(first), Counter(second)
    chance = sum(count * theirs[verdict] for verdict, count in ours.items()) / n**2
    if chance == 1:
        return None
    return (sum(a == b for a, b in zip(first, second, strict=True)) / n - chance) / (1 - chance)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's correlation with averaged ties; None for fewer than three pairs and where either is constant."""
    if len(first) < 3 or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])
