from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import SettingError
from qilin_tasks.results import stats

REPO = Path(__file__).resolve().parents[1]
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


BLOCKS = st.sampled_from([1, 60, 700, 5_000, 1_000_000])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(1e-9, 1e9), BLOCKS)
def test_blocks_leave_every_bit_alone(seed: int, documents: int, scale: float, cells: int) -> None:
    """Whatever order a matrix product adds in: it depends on the block's size as on the processor and its BLAS."""
    scores = np.random.default_rng(seed).normal(size=(documents, 3)) * scale
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "BLOCK_CELLS", cells)
        p = stats.sign_flip_p(scores, pairs=[(0, 1), (1, 2)], resamples=300, seed=0)
        means = stats.resampled_means(scores, resamples=300, seed=0)
    assert stats.resampled_means(scores, resamples=300, seed=0).tobytes() == means.tobytes()
    assert (stats.sign_flip_p(scores, pairs=[(0, 1), (1, 2)], resamples=300, seed=0) == p).all()


def test_rounding_the_sums_moves_no_mean_by_more_than_rounding() -> None:
    scores = np.random.default_rng(5).random((2932, 4))
    rng = np.random.default_rng(7)
    drawn = rng.integers(0, 2932, size=(1, 2932), dtype=np.int32)[0]
    means = stats.resampled_means(scores, resamples=1, seed=7)[0]
    assert means == pytest.approx([math.fsum(column[drawn]) / 2932 for column in scores.T], abs=1e-12)


CORES = ("Haswell", "SkylakeX", "Zen", "Prescott")


def test_other_processors_give_the_same_bytes() -> None:
    """OpenBLAS adds in another order with each kernel; a kernel that this processor lacks is left out by it."""
    code = (
        "import hashlib, numpy as np; from qilin_tasks.results import stats;"
        "s = np.random.default_rng(1).random((211, 7));"
        "m = stats.resampled_means(s, resamples=500, seed=0);"
        "p = stats.sign_flip_p(s, pairs=[(0, 1), (2, 3)], resamples=500, seed=0);"
        "print(hashlib.sha256(m.tobytes() + p.tobytes()).hexdigest())"
    )
    printed = []
    for core in CORES:
        environment = {**os.environ, "OPENBLAS_CORETYPE": core, "PYTHONPATH": str(REPO)}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        # SIGILL: the kernel's instructions are not those of this machine.
        if ran.returncode >= 0:
            assert ran.returncode == 0, ran.stderr
            printed.append(ran.stdout)
    assert printed and len(set(printed)) == 1


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


def test_gap_closed_by_hand() -> None:
    floor = np.linspace(0.1, 0.3, 40)
    share = stats.gap_closed(np.stack([floor, floor + 0.05, floor + 0.2], axis=1), resamples=200, seed=0)
    assert share is not None
    assert share.value == pytest.approx(0.25)
    assert share.low == pytest.approx(0.25)
    assert share.high == pytest.approx(0.25)


def test_gap_without_a_gap_is_none() -> None:
    scores = np.random.default_rng(0).random((30, 3))
    scores[:, 2] = scores[:, 0]
    assert stats.gap_closed(scores, resamples=50, seed=0) is None


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
