from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import SettingError
from qilin_tasks.results import stats

SIMULATIONS = 2_000


def test_mean_interval_by_hand() -> None:
    # 1..5: mean 3, standard error sqrt(2.5 / 5), t(0.975, 4) = 2.7764 (tables).
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert interval.value == 3
    assert interval.se == pytest.approx(math.sqrt(0.5))
    assert interval.high - 3 == pytest.approx(2.7764 * math.sqrt(0.5), abs=1e-4)
    assert (interval.n, interval.clusters) == (5, 5)


def test_clustered_error_counts_copies_once() -> None:
    once = stats.mean_interval([0.0, 1.0, 1.0, 0.0, 1.0])
    copied = stats.mean_interval(np.repeat([0.0, 1.0, 1.0, 0.0, 1.0], 3), clusters=np.repeat(range(5), 3).tolist())
    assert copied.se == pytest.approx(once.se)
    assert copied.clusters == 5


def test_one_cluster_has_no_spread() -> None:
    interval = stats.mean_interval([1.0, 0.0], clusters=["p", "p"])
    assert math.isnan(interval.se)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("scores", [[], [[1.0, float("nan")]], [[[1.0]]]])
def test_bad_scores_are_refused(scores: list[object]) -> None:
    with pytest.raises(SettingError):
        stats.compare_systems(scores, resamples=10, seed=0)


def test_wrong_number_of_clusters_is_refused() -> None:
    with pytest.raises(SettingError, match="2 clusters for 3 documents"):
        stats.mean_interval([1, 2, 3], clusters=["a", "b"])


@pytest.mark.parametrize("n", [3, 6, 9])
@pytest.mark.parametrize("kind", ["continuous", "ties"])
def test_exact_permutation_equals_scipy(n: int, kind: str) -> None:
    from scipy.stats import permutation_test

    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = rng.random((2, n)) if kind == "continuous" else rng.integers(0, 2, (2, n)).astype(float)
        expected = permutation_test(
            (a, b), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", n_resamples=np.inf
        )
        p = stats.sign_flip_p(np.stack([a, b], axis=1), pairs=[(0, 1)], resamples=2**n, seed=0)
        assert p[0] == pytest.approx(min(1.0, float(expected.pvalue)), abs=1e-12)


def test_random_permutation_is_close_to_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal([0.35, 0.0], 1, (14, 2))
    exact = stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=2**14, seed=0)[0]
    drawn = stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=2**14 - 1, seed=0)[0]
    assert drawn == pytest.approx(exact, abs=0.015)


def test_permutation_flips_clusters_together() -> None:
    a = np.repeat([1.0, 0.0, 1.0, 1.0], 4)
    clusters = np.repeat(range(4), 4).tolist()
    # Three of four clusters differ, all in one direction: 2 of 8 patterns are as far out.
    p = stats.sign_flip_p(np.stack([a, np.zeros(16)], 1), pairs=[(0, 1)], resamples=1000, seed=0, clusters=clusters)
    assert p[0] == 0.25


def test_holm_by_hand() -> None:
    # 0.01 x 3, max(0.03, 0.02 x 2), max(0.04, 0.04 x 1): Holm (1979).
    assert stats.holm([0.04, 0.01, 0.02]).tolist() == pytest.approx([0.04, 0.03, 0.04])
    assert stats.holm([0.6, 0.7]).tolist() == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = stats.holm(p_values)
    assert (adjusted >= np.array(p_values) - 1e-12).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_bootstrap_is_paired_and_seeded() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(200)
    scores = np.stack([base + 0.1, base], axis=1)
    means = stats.resampled_means(scores, resamples=500, seed=3)
    assert np.ptp(means[:, 0] - means[:, 1]) < 1e-12
    assert (means == stats.resampled_means(scores, resamples=500, seed=3)).all()
    assert (means != stats.resampled_means(scores, resamples=500, seed=4)).any()


def test_blocks_leave_the_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Bit for bit: sums of whole numbers don't depend on the order of a BLAS.
    scores = np.random.default_rng(1).random((50, 3))
    p = stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=400, seed=0)
    means = stats.resampled_means(scores, resamples=400, seed=0)
    for cells in (50, 700, 999):
        monkeypatch.setattr(stats, "BLOCK_CELLS", cells)
        assert (stats.resampled_means(scores, resamples=400, seed=0) == means).all()
        assert (stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=400, seed=0) == p).all()


def test_resampled_means_are_those_of_the_drawn_documents() -> None:
    scores = np.random.default_rng(2).normal(0, 3, (40, 2))
    drawn = np.random.default_rng(9).integers(0, 40, size=(30, 40), dtype=np.int32)
    assert stats.resampled_means(scores, resamples=30, seed=9) == pytest.approx(scores[drawn].mean(axis=1), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e9, 1e200])
def test_scores_of_any_size_are_resampled_and_flipped(scale: float) -> None:
    scores = np.random.default_rng(3).random((60, 2))
    means = stats.resampled_means(scores * scale, resamples=50, seed=1) / scale
    assert means == pytest.approx(stats.resampled_means(scores, resamples=50, seed=1), abs=1e-12)
    p = [stats.sign_flip_p(s, pairs=[(0, 1)], resamples=999, seed=0)[0] for s in (scores, scores * scale)]
    assert p[0] == p[1]


KERNELS = ("Haswell", "SkylakeX", "Zen", "Prescott")
PRINT_BITS = """
import hashlib
import numpy as np
from qilin_tasks.results import stats
scores = np.random.default_rng(1).random((333, 7))
found = hashlib.sha256()
for cells in (1_000_000, 4_000):
    stats.BLOCK_CELLS = cells
    found.update(stats.resampled_means(scores, resamples=400, seed=0).tobytes())
    found.update(stats.sign_flip_p(scores, pairs=[(0, 1), (2, 6)], resamples=400, seed=0).tobytes())
print(found.hexdigest())
"""


def _under(kernel: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


def test_every_processor_gives_the_same_bits() -> None:
    runs = [_under(kernel, "-c", PRINT_BITS) for kernel in KERNELS]
    if any(run.returncode < 0 for run in runs):
        pytest.skip("this processor lacks the instructions of one of OpenBLAS's kernels")
    assert [run.returncode for run in runs] == [0] * len(KERNELS), runs
    assert len({run.stdout for run in runs}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_these_tests_pass_on_every_processor(kernel: str) -> None:
    fast = "not coverage and not false_positive and not processor"
    run = _under(kernel, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider", "-k", fast)
    if run.returncode < 0:
        pytest.skip(f"this processor lacks the instructions of OpenBLAS's {kernel}")
    assert run.returncode == 0, run.stdout


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=2, max_size=12), st.integers(0, 99))
def test_swapping_the_systems_turns_the_difference_around(rows: list[tuple[float, float]], seed: int) -> None:
    forward, backward = (
        stats.compare_systems(rows, resamples=200, seed=seed, pairs=[pair])[0] for pair in ((0, 1), (1, 0))
    )
    assert forward.difference.value == pytest.approx(-backward.difference.value, abs=1e-12)
    assert forward.difference.low == pytest.approx(-backward.difference.high, abs=1e-9)
    assert forward.p == pytest.approx(backward.p)
    assert 0 < forward.p <= forward.p_holm <= 1


def test_letters_by_hand() -> None:
    # Piepho (2004), the idea of its first example: neighbours overlap, the ends differ.
    assert stats.letter_groups([0.9, 0.8, 0.7], [(0, 2)]) == ["a", "ab", "b"]
    assert stats.letter_groups([0.1, 0.9], [(0, 1)]) == ["b", "a"]
    assert stats.letter_groups([0.5, 0.5, 0.5], []) == ["a", "a", "a"]
    assert stats.letter_groups([3, 2, 1], [(0, 1), (0, 2), (1, 2)]) == ["a", "b", "c"]


@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_letters_are_shared_exactly_by_pairs_that_do_not_differ(case: tuple[int, set[tuple[int, int]]]) -> None:
    n, raw = case
    different = {(min(a, b), max(a, b)) for a, b in raw if a != b}
    letters = stats.letter_groups([float(-i) for i in range(n)], sorted(different))
    for a in range(n):
        assert letters[a]
        for b in range(a + 1, n):
            assert bool(set(letters[a]) & set(letters[b])) == ((a, b) not in different)


def _share(scores: np.ndarray) -> stats.Interval | None:
    return stats.share_of_gap(scores, stats.resampled_means(scores, resamples=200, seed=0), clusters=None)


def test_share_of_the_gap_by_hand() -> None:
    floor = np.linspace(0.1, 0.3, 40)
    share = _share(np.stack([floor, floor + 0.05, floor + 0.2], axis=1))
    assert share is not None
    assert share.value == pytest.approx(0.25)
    assert share.low == pytest.approx(0.25)
    assert share.high == pytest.approx(0.25)


def test_share_without_a_gap_is_none() -> None:
    scores = np.random.default_rng(0).random((30, 3))
    scores[:, 2] = scores[:, 0]
    assert _share(scores) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_intervals_stay_in_the_range(values: list[float]) -> None:
    interval = stats.mean_interval(values, bounds=(0.0, 1.0))
    assert 0 <= interval.low <= interval.high <= 1


@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=1, max_size=25))
def test_differences_stay_in_their_range(rows: list[tuple[float, float]]) -> None:
    (test,) = stats.compare_systems(rows, resamples=50, seed=0, bounds=[(0.0, 1.0)] * 2)
    assert -1 <= test.difference.low <= test.difference.high <= 1


def test_a_range_of_three_documents() -> None:
    # Student's t with 2 degrees of freedom reaches beyond both ends: 0.4 +- 4.303 x 0.305 (of the standard error).
    interval = stats.mean_interval([0.0, 0.2, 1.0], bounds=(0.0, 1.0))
    assert (interval.low, interval.high) == (0.0, 1.0)
    assert stats.mean_interval([0.0, 0.2, 1.0]).low < 0


@pytest.mark.parametrize("models", [2, 10, 34, 40])
def test_holm_can_reject_however_many_pairs_there_are(models: int) -> None:
    """34 models at 10,000 resamples, and 10 at 500, could not differ: the smallest p times the pairs exceeded .05."""
    rng = np.random.default_rng(models)
    scores = np.stack([rng.normal(5 * i, 1, 30) for i in range(models)], axis=1)
    tests = stats.compare_systems(scores, resamples=500, seed=0)
    assert max(test.p_holm for test in tests) < 0.05


@pytest.mark.parametrize(("clusters", "resamples"), [(1, 100), (3, 100), (5, 100), (7, 100), (12, 300)])
def test_the_smallest_p_is_what_a_constant_difference_gives(clusters: int, resamples: int) -> None:
    scores = np.stack([np.ones(clusters), np.zeros(clusters)], axis=1)
    p = stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=resamples, seed=0)[0]
    assert stats.smallest_p(clusters, resamples=resamples) <= p
    if 2**clusters <= resamples:
        assert stats.smallest_p(clusters, resamples=resamples) == p


def _skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Scores like ROUGE-L: within 0..1, mean 0.25, skewed."""
    return rng.beta(2, 6, n)


def test_coverage_of_the_mean_interval() -> None:
    rng = np.random.default_rng(11)
    intervals = [stats.mean_interval(_skewed(rng, 80)) for _ in range(SIMULATIONS)]
    assert 0.93 <= np.mean([i.low <= 0.25 <= i.high for i in intervals]) <= 0.97


@pytest.mark.parametrize("clustered", [True, False])
def test_coverage_with_clusters(clustered: bool) -> None:
    """Documents of one paragraph share half their variance; leaving that out must be seen to fail."""
    rng = np.random.default_rng(12)
    groups, size = 40, 5
    clusters = np.repeat(range(groups), size).tolist()
    covered = 0
    for _ in range(SIMULATIONS):
        scores = np.repeat(rng.normal(0, 1, groups), size) + rng.normal(0, 1, groups * size)
        interval = stats.mean_interval(scores, clusters=clusters if clustered else None)
        covered += interval.low <= 0 <= interval.high
    assert (0.93 <= covered / SIMULATIONS <= 0.97) if clustered else (covered / SIMULATIONS < 0.85)


def test_coverage_of_the_paired_bootstrap() -> None:
    rng = np.random.default_rng(13)
    covered = 0
    for seed in range(SIMULATIONS):
        base = _skewed(rng, 60)
        other = np.clip(base + rng.normal(0.03, 0.1, 60), -2, 2)
        means = stats.resampled_means(np.stack([other, base], 1), resamples=1000, seed=seed)
        low, high = stats.percentile_interval(means[:, 0] - means[:, 1], units=60)
        covered += low <= 0.03 <= high
    assert 0.93 <= covered / SIMULATIONS <= 0.97


def test_false_positive_rate_of_the_permutation_test() -> None:
    rng = np.random.default_rng(14)
    hits = 0
    for seed in range(SIMULATIONS):
        scores = np.stack([_skewed(rng, 50), _skewed(rng, 50)], axis=1)
        hits += stats.sign_flip_p(scores, pairs=[(0, 1)], resamples=999, seed=seed)[0] <= 0.05
    assert 0.04 <= hits / SIMULATIONS <= 0.06


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(15)
    base = _skewed(rng, 300)
    scores = np.stack([base, base + rng.normal(0.03, 0.1, 300), base + rng.normal(0, 0.1, 300)], axis=1)
    tests = {(t.first, t.second): t for t in stats.compare_systems(scores, resamples=2000, seed=0)}
    assert tests[0, 1].p_holm < 0.01
    assert tests[0, 1].difference.high < 0
    assert tests[0, 2].p_holm > 0.05
