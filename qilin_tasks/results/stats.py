"""Uncertainty of means and of paired differences: pure, vectorised over systems, seeded.

Scores are arrays of shape (documents, systems). Documents that share a source (a paragraph, a user) are one cluster:
they are resampled, flipped and counted together (Miller 2024, arXiv 2411.00640; Cameron & Miller 2015).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qilin_tasks.errors import SettingError

Floats = NDArray[np.float64]

# Cells of a resampling matrix that are in memory at once: 8 MB of float64.
BLOCK_CELLS = 1_000_000
# Whole numbers up to here, and their sums, are exact in float64, in whatever order they are added.
EXACT_INTEGERS = 2.0**52
# Pairs whose flipped differences are looked at together: they stay in the processor's cache.
PAIRS_AT_ONCE = 64
# Permutations for each test of a family, so that Holm's correction leaves p values far below 5 %.
PERMUTATIONS_PER_TEST = 50
# Below this many clusters a bootstrap of a difference is too narrow; Student's t is used.
FEWEST_FOR_BOOTSTRAP = 20
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
    sums = np.zeros((int(codes.max()) + 1, matrix.shape[1]))
    np.add.at(sums, codes, matrix)
    return sums


def _whole_numbers(sums: Floats, *, weight: float) -> tuple[Floats, float]:
    """`sums` as whole numbers of a unit (a power of two), and the unit: their weighted sums are exact in float64.

    A BLAS adds in an order that depends on the processor and on the shape of the block; exact sums don't. `weight`
    bounds the sum of the absolute weights; the rounding is at most half a unit, `weight * max(sums) / 2**52`.
    """
    bound = weight * float(np.abs(sums).max(initial=0.0))
    if bound == 0:
        return sums, 1.0
    # Never a subnormal: dividing by one would overflow.
    least = max(bound / EXACT_INTEGERS, float(np.finfo(np.float64).tiny))
    unit = float(2.0 ** np.ceil(np.log2(least)))
    return np.rint(sums / unit), unit


def student_t(*, level: float, df: int) -> float:
    """Two-sided quantile of Student's t: 1.96 for level 0.95 and many degrees of freedom; infinite for df 0."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2)) if df > 0 else float("inf")


Range = tuple[float | None, float | None]
UNBOUNDED: Range = (None, None)


def within(low: float, high: float, bounds: Range) -> tuple[float, float]:
    """An interval cut at the ends of the range that the true value can't leave: its coverage stays as it is."""
    least, most = bounds
    return (low if least is None else max(low, least)), (high if most is None else min(high, most))


def difference_range(bounds: Range) -> Range:
    """The range of a difference of two values from `bounds`."""
    low, high = bounds
    return UNBOUNDED if low is None or high is None else (low - high, high - low)


def mean_interval(
    scores: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    bounds: Range = UNBOUNDED,
) -> Interval:
    """Mean of one system's scores (documents,) with the clustered standard error (CR1) and Student's t interval.

    The interval is cut at `bounds`, the metric's range. One cluster alone says nothing of the spread: its standard
    error is NaN and its interval is the whole range.

    >>> interval = mean_interval([0.2, 0.4, 0.6], bounds=(0.0, 1.0))
    >>> round(interval.value, 3), round(interval.se, 3), round(interval.low, 3), round(interval.high, 3)
    (0.4, 0.115, 0.0, 0.897)
    """
    column = _matrix(scores)
    if column.shape[1] != 1:
        raise SettingError(f"scores of shape {column.shape}: mean_interval takes one system")
    n = len(column)
    mean = float(column.mean())
    residuals = _sums(column - mean, _codes(clusters, n))[:, 0]
    groups = len(residuals)
    if groups == 1:
        return Interval(mean, float("nan"), *within(float("-inf"), float("inf"), bounds), n, 1)
    se = float(np.sqrt(groups / (groups - 1) * (residuals**2).sum()) / n)
    half = student_t(level=level, df=groups - 1) * se
    return Interval(mean, se, *within(mean - half, mean + half, bounds), n, groups)


def _blocks(total: int, width: int) -> Iterator[int]:
    size = max(1, BLOCK_CELLS // max(1, width))
    for start in range(0, total, size):
        yield min(size, total - start)


def resampled_means(
    scores: ArrayLike, *, resamples: int, seed: int, clusters: Sequence[Hashable] | None = None
) -> Floats:
    """Means of every system in every bootstrap resample, (resamples, systems); all systems share each resample.

    Sharing keeps the pairing: the difference of two columns is the paired bootstrap of their difference. The values
    are the same to the last bit on every processor and for every block size; sums are rounded at 2**-52 of the largest.
    """
    matrix = _matrix(scores)
    codes = _codes(clusters, len(matrix))
    sums, sizes = _sums(matrix, codes), np.bincount(codes).astype(np.float64)
    groups = len(sums)
    whole, unit = _whole_numbers(sums, weight=groups)
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, matrix.shape[1]))
    done = 0
    for rows in _blocks(resamples, groups):
        drawn = rng.integers(0, groups, size=(rows, groups), dtype=np.int32)
        drawn += (np.arange(rows, dtype=np.int32) * groups)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * groups).reshape(rows, groups).astype(np.float64)
        means[done : done + rows] = (counts @ whole) * unit / (counts @ sizes)[:, None]
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
    if _is_exact(groups, resamples):
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
    # Every sum of signed whole numbers is exact, so no hit depends on the order in which a BLAS adds.
    whole, _ = _whole_numbers(sums, weight=2 * len(sums))
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    differences = whole[:, first] - whole[:, second]
    observed = np.abs(differences.sum(axis=0))
    # Patterns that are equal but for the rounding of scores, and to a unit in each of both systems, are ties.
    threshold = observed - 1e-11 * np.abs(differences).sum(axis=0) - 2 * len(sums)
    hits, patterns = np.zeros(len(first), dtype=np.int64), 0
    for signs in _signs(len(sums), resamples=resamples, seed=seed):
        # A system a row: what a pair compares lies side by side, which forty systems' thousands of pairs need.
        flipped = whole.T @ signs.T
        for start in range(0, len(first), PAIRS_AT_ONCE):
            some = slice(start, start + PAIRS_AT_ONCE)
            gaps = flipped[first[some]]
            gaps -= flipped[second[some]]
            np.abs(gaps, out=gaps)
            hits[some] += np.count_nonzero(gaps >= threshold[some, None], axis=1)
        patterns += len(signs)
    return hits / patterns if _is_exact(len(sums), resamples) else (hits + 1) / (patterns + 1)


def _is_exact(clusters: int, resamples: int) -> bool:
    return clusters <= MOST_EXACT_CLUSTERS and 2**clusters <= resamples


def smallest_p(clusters: int, *, resamples: int) -> float:
    """The smallest p that `sign_flip_p` can give for this many clusters: the pattern seen and its mirror image."""
    return min(1.0, 2 / 2**clusters) if _is_exact(clusters, resamples) else 1 / (resamples + 1)


def permutations_for(tests: int, *, resamples: int) -> int:
    """Permutations for a family of so many tests: at least 50 a test, so that Holm's smallest p is below 0.02."""
    return max(resamples, PERMUTATIONS_PER_TEST * tests)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjusted p values, in the order given: they keep the family-wise error (Holm 1979).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
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
    bounds: Sequence[Range] | None = None,
    permutations: int | None = None,
) -> list[PairedTest]:
    """Paired bootstrap and permutation of the given pairs of columns (all pairs by default), Holm over these pairs.

    `means` are the columns' resampled means where they are there already (`resampled_means`); `bounds` are the
    columns' ranges, which no interval leaves. Below 20 clusters the interval is Student's t. `permutations` are at
    least as many as `permutations_for` says for all pairs as one family, where they aren't given.

    >>> scores = [[0.5 + i / 100, 0.4 + i / 100] for i in range(30)]  # 30 documents, two systems
    >>> (test,) = compare_systems(scores, resamples=1000, seed=0)
    >>> round(test.difference.value, 3), test.p < 0.01
    (0.1, True)
    """
    matrix = _matrix(scores)
    if pairs is None:
        systems = matrix.shape[1]
        pairs = [(a, b) for a in range(systems) for b in range(a + 1, systems)]
    if not pairs:
        return []
    if means is None:
        means = resampled_means(matrix, resamples=resamples, seed=seed, clusters=clusters)
    if permutations is None:
        permutations = permutations_for(len(pairs), resamples=resamples)
    p = sign_flip_p(matrix, pairs=pairs, resamples=permutations, seed=seed + 1, clusters=clusters)
    tests = []
    for (a, b), raw, adjusted in zip(pairs, p, holm(p), strict=True):
        limits = difference_range(bounds[a]) if bounds else UNBOUNDED
        interval = mean_interval(matrix[:, a] - matrix[:, b], clusters=clusters, bounds=limits)
        if interval.clusters >= FEWEST_FOR_BOOTSTRAP:
            low, high = percentile_interval(means[:, a] - means[:, b], units=interval.clusters)
            low, high = within(low, high, limits)
            interval = replace(interval, low=low, high=high)
        tests.append(PairedTest(a, b, interval, float(raw), float(adjusted)))
    return tests


def share_of_gap(scores: Floats, means: Floats, *, clusters: Sequence[Hashable] | None) -> Interval | None:
    """(condition - floor) / (ceiling - floor) of the columns (floor, condition, ceiling), from their resampled means.

    None where the ceiling is not clearly above the floor (its interval reaches 0): the share has no meaning there.
    """
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
