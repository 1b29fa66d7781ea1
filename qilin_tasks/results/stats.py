"""Uncertainty of means and of paired differences: pure, vectorised over systems, seeded.

Scores are arrays of shape (documents, systems). Documents that share a source (a paragraph, a user) are one cluster:
they are resampled, flipped and counted together (Miller 2024, arXiv 2411.00640; Cameron & Miller 2015).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qilin_tasks.errors import SettingError

Floats = NDArray[np.float64]

# Cells of a resampling matrix that are in memory at once: 8 MB of float64.
BLOCK_CELLS = 1_000_000
# Up to this many clusters every sign pattern is enumerated when that is no more work than the resamples asked for.
MOST_EXACT_CLUSTERS = 20


@dataclass(frozen=True)
class Interval:
    """A mean with its standard error and 95 % interval; `clusters` is the number of independent units."""

    value: float
    se: float
    low: float
    high: float
    n: int
    clusters: int


@dataclass(frozen=True)
class PairedTest:
    """First minus second system: the mean difference, its bootstrap interval, permutation p and Holm-adjusted p."""

    first: int
    second: int
    difference: Interval
    p: float
    p_holm: float


def _matrix(scores: ArrayLike) -> Floats:
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or not matrix.size:
        raise SettingError(f"scores of shape {matrix.shape}: give one row a document and one column a system")
    if not np.isfinite(matrix).all():
        raise SettingError(
            f"scores hold {int((~np.isfinite(matrix)).sum())} values that are not finite: keep only the documents "
            "that every compared system has a score for"
        )
    return matrix


def _codes(clusters: Sequence[Hashable] | None, n: int) -> NDArray[np.intp]:
    if clusters is None:
        return np.arange(n)
    if len(clusters) != n:
        raise SettingError(f"{len(clusters)} clusters for {n} documents: give one cluster a document")
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(cluster, len(seen)) for cluster in clusters], dtype=np.intp)


def _sums(matrix: Floats, codes: NDArray[np.intp]) -> Floats:
    """Sums of each cluster, shape (clusters, systems), rounded so that adding them up in any order is exact.

    A matrix product adds in an order of its own, which depends on the processor, its BLAS and the block's size. As
    multiples of a power of two that no partial sum can outgrow, the sums lose nothing whatever that order is: the same
    bytes everywhere, and ties of the permutation test are ties. The rounding is below 2**-52 of the sum of all.
    """
    sums = np.zeros((int(codes.max()) + 1, matrix.shape[1]))
    np.add.at(sums, codes, matrix)
    _, exponent = np.frexp(np.abs(sums).max() * len(sums))
    grid = np.ldexp(1.0, int(exponent) - 52)
    return np.rint(sums / grid) * grid if grid > 0 else sums


def student_t(*, level: float, df: int) -> float:
    """Two-sided quantile of Student's t: 1.96 for level 0.95 and many degrees of freedom; infinite for df 0."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2)) if df > 0 else float("inf")


def mean_interval(scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95) -> Interval:
    """Mean of one system's scores (documents,) with the clustered standard error (CR1) and Student's t interval.

    One cluster alone says nothing of the spread: its standard error is NaN and its interval is infinite.
    """
    column = _matrix(scores)
    if column.shape[1] != 1:
        raise SettingError(f"scores of shape {column.shape}: mean_interval takes one system")
    n = len(column)
    mean = float(column.mean())
    residuals = _sums(column - mean, _codes(clusters, n))[:, 0]
    groups = len(residuals)
    if groups == 1:
        return Interval(mean, float("nan"), float("-inf"), float("inf"), n, 1)
    se = float(np.sqrt(groups / (groups - 1) * (residuals**2).sum()) / n)
    half = student_t(level=level, df=groups - 1) * se
    return Interval(mean, se, mean - half, mean + half, n, groups)


def _blocks(total: int, width: int) -> Iterator[int]:
    size = max(1, BLOCK_CELLS // max(1, width))
    for start in range(0, total, size):
        yield min(size, total - start)


def resampled_means(
    scores: ArrayLike, *, resamples: int, seed: int, clusters: Sequence[Hashable] | None = None
) -> Floats:
    """Means of every system in every bootstrap resample, (resamples, systems); all systems share each resample.

    Sharing keeps the pairing: the difference of two columns is the paired bootstrap of their difference.
    """
    matrix = _matrix(scores)
    codes = _codes(clusters, len(matrix))
    sums, sizes = _sums(matrix, codes), np.bincount(codes).astype(np.float64)
    groups = len(sums)
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, matrix.shape[1]))
    done = 0
    for rows in _blocks(resamples, groups):
        drawn = rng.integers(0, groups, size=(rows, groups), dtype=np.int32)
        drawn += (np.arange(rows, dtype=np.int32) * groups)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * groups).reshape(rows, groups).astype(np.float64)
        means[done : done + rows] = (counts @ sums) / (counts @ sizes)[:, None]
        done += rows
    return means


def percentile_interval(resampled: ArrayLike, *, units: int, level: float = 0.95) -> tuple[float, float]:
    """Expanded percentile interval of a resampled statistic: (low, high).

    The plain percentiles are too narrow for few units; the tails are moved out as Student's t is to the normal
    (Hesterberg 2015, doi 10.1080/00031305.2015.1089789).
    """
    values = np.asarray(resampled, dtype=np.float64)
    if units < 2:
        return float("-inf"), float("inf")
    from scipy.special import ndtr

    tail = float(ndtr(-np.sqrt(units / (units - 1)) * student_t(level=level, df=units - 1)))
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _signs(groups: int, *, resamples: int, seed: int) -> Iterator[Floats]:
    """Blocks of sign patterns: every pattern when that is at most `resamples`, else random ones."""
    if groups <= MOST_EXACT_CLUSTERS and 2**groups <= resamples:
        patterns = np.arange(2**groups)[:, None] >> np.arange(groups) & 1
        yield _plus_minus(patterns)
        return
    rng = np.random.default_rng(seed)
    for rows in _blocks(resamples, groups):
        words = rng.integers(0, 2**32, size=(rows, (groups + 31) // 32), dtype=np.uint32)
        yield _plus_minus(np.unpackbits(words.view(np.uint8), axis=1, count=groups))


def _plus_minus(bits: NDArray[np.integer[Any]]) -> Floats:
    signs = bits.astype(np.float64)
    signs *= 2
    signs -= 1
    return signs


def sign_flip_p(
    scores: ArrayLike,
    *,
    pairs: Sequence[tuple[int, int]],
    resamples: int,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
) -> Floats:
    """Two-sided p of the paired permutation test (the systems' labels are swapped per cluster), one a pair.

    Exact when every pattern fits into `resamples` (as scipy.stats.permutation_test, permutation_type="samples"),
    else (hits + 1) / (resamples + 1), which is never 0 (Phipson & Smyth 2010).
    """
    matrix = _matrix(scores)
    # Centring per document leaves every difference as it is and the sums small.
    matrix = matrix - matrix.mean(axis=1, keepdims=True)
    sums = _sums(matrix, _codes(clusters, len(matrix)))
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    differences = sums[:, first] - sums[:, second]
    observed = np.abs(differences.sum(axis=0))
    # Equal patterns must count as equal in spite of rounding.
    threshold = observed - 1e-11 * np.abs(differences).sum(axis=0)
    hits, patterns = np.zeros(len(first), dtype=np.int64), 0
    for signs in _signs(len(sums), resamples=resamples, seed=seed):
        flipped = signs @ sums
        hits += (np.abs(flipped[:, first] - flipped[:, second]) >= threshold).sum(axis=0)
        patterns += len(signs)
    exact = len(sums) <= MOST_EXACT_CLUSTERS and 2 ** len(sums) <= resamples
    return hits / patterns if exact else (hits + 1) / (patterns + 1)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjusted p values, in the order given: they keep the family-wise error (Holm 1979)."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def compare_systems(
    scores: ArrayLike,
    *,
    resamples: int,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    means: Floats | None = None,
) -> list[PairedTest]:
    """Paired bootstrap and permutation of the given pairs of columns (all pairs by default), Holm over these pairs.

    `means` are the columns' resampled means where they are there already (`resampled_means`).
    """
    matrix = _matrix(scores)
    if pairs is None:
        systems = matrix.shape[1]
        pairs = [(a, b) for a in range(systems) for b in range(a + 1, systems)]
    if not pairs:
        return []
    if means is None:
        means = resampled_means(matrix, resamples=resamples, seed=seed, clusters=clusters)
    p = sign_flip_p(matrix, pairs=pairs, resamples=resamples, seed=seed + 1, clusters=clusters)
    tests = []
    for (a, b), raw, adjusted in zip(pairs, p, holm(p), strict=True):
        error = mean_interval(matrix[:, a] - matrix[:, b], clusters=clusters)
        low, high = percentile_interval(means[:, a] - means[:, b], units=error.clusters)
        interval = Interval(error.value, error.se, low, high, error.n, error.clusters)
        tests.append(PairedTest(a, b, interval, float(raw), float(adjusted)))
    return tests


def gap_closed(
    scores: ArrayLike, *, resamples: int, seed: int, clusters: Sequence[Hashable] | None = None
) -> Interval | None:
    """(condition - floor) / (ceiling - floor) of the columns (floor, condition, ceiling), paired bootstrap.

    None where the ceiling is not clearly above the floor (its interval reaches 0): the share has no meaning there.
    """
    matrix = _matrix(scores)
    if matrix.shape[1] != 3:
        raise SettingError(f"scores of shape {matrix.shape}: gap_closed takes (floor, condition, ceiling)")
    means = resampled_means(matrix, resamples=resamples, seed=seed, clusters=clusters)
    return share_of_gap(matrix, means, clusters=clusters)


def share_of_gap(scores: Floats, means: Floats, *, clusters: Sequence[Hashable] | None) -> Interval | None:
    """As `gap_closed`, from resampled means (resamples, 3) that are there already."""
    gap = mean_interval(scores[:, 2] - scores[:, 0], clusters=clusters)
    if not gap.low > 0:
        return None
    floor, condition, ceiling = means.T
    usable = ceiling > floor
    shares = (condition - floor)[usable] / (ceiling - floor)[usable]
    low, high = percentile_interval(shares, units=gap.clusters)
    value = float((scores[:, 1] - scores[:, 0]).mean() / gap.value)
    return Interval(value, float(shares.std(ddof=1)), low, high, gap.n, gap.clusters)


def letter_groups(means: Sequence[float], different: Sequence[tuple[int, int]]) -> list[str]:
    """Compact letter display: systems that share a letter can't be told apart; the best mean gets an `a`.

    Insert and absorb over the significantly different pairs (Piepho 2004, doi 10.1198/1061860043515).
    """
    groups: list[frozenset[int]] = [frozenset(range(len(means)))]
    for a, b in different:
        split: list[frozenset[int]] = []
        for group in groups:
            split += [group - {a}, group - {b}] if a in group and b in group else [group]
        unique = list(dict.fromkeys(split))
        groups = [g for g in unique if not any(g < other for other in unique)]
    groups.sort(key=lambda group: max((means[i], -i) for i in group), reverse=True)
    names = [_letter(i) for i in range(len(groups))]
    return ["".join(n for n, group in zip(names, groups, strict=True) if i in group) for i in range(len(means))]


def _letter(index: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[index] if index < 26 else f"{letters[index % 26]}{index // 26}"
