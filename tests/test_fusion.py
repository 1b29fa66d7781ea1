"""Reciprocal rank fusion and weighted sums: by hand, against ranx, and by their properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.errors import SettingError
from qilin_tasks.retrieval.fusion import min_max, reciprocal_rank_fusion, weighted_sum, z_score

A = [("x", 9.0), ("y", 5.0), ("z", 1.0)]
B = [("y", 0.9), ("w", 0.1)]

rankings = st.lists(
    st.dictionaries(st.integers(0, 20), st.floats(-1e6, 1e6), max_size=12).map(
        lambda scores: sorted(scores.items(), key=lambda item: -item[1])
    ),
    min_size=1,
    max_size=4,
)


def test_rrf_by_hand() -> None:
    fused = reciprocal_rank_fusion([A, B], k=10)
    assert [name for name, _ in fused] == ["y", "x", "w", "z"]
    assert dict(fused)["y"] == pytest.approx(1 / 62 + 1 / 61)
    assert dict(fused)["w"] == pytest.approx(1 / 62)


def test_weighted_sum_by_hand() -> None:
    fused = dict(weighted_sum([A, B], weights=[0.75, 0.25], k=10))
    assert fused == pytest.approx({"x": 0.75, "y": 0.75 * 0.5 + 0.25, "z": 0.0, "w": 0.0})


#: Three rankings of twenty out of thirty documents, and what ranx 0.3.21 makes of them by
#: fuse([Run.from_dict({"q": {f"d{name}": 20.0 - place, …}}), …], method="rrf", params={"k": 60}).
RANKINGS = (
    (2, 11, 26, 21, 10, 4, 28, 16, 23, 6, 18, 25, 3, 29, 8, 0, 19, 12, 20, 13),
    (7, 11, 21, 10, 25, 8, 4, 14, 12, 9, 18, 28, 23, 2, 20, 3, 1, 29, 15, 0),
    (27, 20, 13, 1, 5, 7, 3, 22, 24, 25, 16, 11, 10, 19, 8, 21, 9, 26, 6, 14),
)
FUSED_BY_RANX = {
    11: 0.04614695340501792, 10: 0.044708245521601686, 21: 0.04465591060985798, 25: 0.04355921855921856,
    20: 0.042120593439499115, 8: 0.041818181818181824, 3: 0.041781898008156765, 7: 0.031544957774465976,
    4: 0.03007688828584351, 2: 0.029906956136464335, 28: 0.028814262023217248, 16: 0.028790389395194696,
    26: 0.028693528693528692, 1: 0.028612012987012988, 13: 0.028373015873015873, 23: 0.02819138376017471,
    18: 0.028169014084507043, 12: 0.027313266443701224, 9: 0.027272727272727275, 14: 0.027205882352941177,
    6: 0.02694394213381555, 19: 0.026500526500526502, 29: 0.026334026334026334, 0: 0.025657894736842105,
    27: 0.01639344262295082, 5: 0.015384615384615385, 22: 0.014705882352941176, 24: 0.014492753623188406,
    15: 0.012658227848101266,
}  # fmt: skip


def test_rrf_agrees_with_ranx() -> None:
    ours = reciprocal_rank_fusion(
        [[(name, 20.0 - place) for place, name in enumerate(names)] for names in RANKINGS], k=100
    )
    assert dict(ours) == pytest.approx(FUSED_BY_RANX)


def test_equal_scores_go_by_id_as_text() -> None:
    assert [name for name, _ in reciprocal_rank_fusion([[(2, 1.0)], [(10, 1.0)]], k=5)] == [10, 2]


@given(rankings, st.integers(1, 8))
def test_fusion_keeps_the_pool_and_the_order_of_scores(given_rankings: list[list[tuple[int, float]]], k: int) -> None:
    pool = {name for ranking in given_rankings for name, _ in ranking}
    for fused in (
        reciprocal_rank_fusion(given_rankings, k=k),
        weighted_sum(given_rankings, weights=[1.0] * len(given_rankings), k=k),
        weighted_sum(given_rankings, weights=[1.0] * len(given_rankings), k=k, normalisation="z-score"),
    ):
        names, scores = [name for name, _ in fused], [score for _, score in fused]
        assert len(fused) == min(k, len(pool)) and set(names) <= pool and len(set(names)) == len(names)
        assert scores == sorted(scores, reverse=True)


@given(rankings)
def test_rrf_does_not_depend_on_the_order_of_the_rankings(given_rankings: list[list[tuple[int, float]]]) -> None:
    forward = reciprocal_rank_fusion(given_rankings, k=50)
    backward = reciprocal_rank_fusion(given_rankings[::-1], k=50)
    assert dict(forward) == pytest.approx(dict(backward))


@given(rankings.filter(lambda many: bool(many[0])))
def test_a_single_ranking_keeps_its_order_up_to_ties(given_rankings: list[list[tuple[int, float]]]) -> None:
    ranking = given_rankings[0]
    assert [name for name, _ in reciprocal_rank_fusion([ranking], k=50)] == [name for name, _ in ranking]
    held = dict(ranking)
    scores = [held[name] for name, _ in weighted_sum([ranking], weights=[1], k=50, normalisation="none")]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_normalised_scores_are_numbers_in_the_same_order(values: list[float]) -> None:
    scores = np.array(values)
    order = np.argsort(scores, kind="stable")
    for normalised in (min_max(scores), z_score(scores)):
        assert np.isfinite(normalised).all()
        assert (np.diff(normalised[order]) >= -1e-9).all()
    assert min_max(scores).min() >= 0 and min_max(scores).max() <= 1


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]])
def test_weights_that_make_no_sense_are_refused(weights: list[float]) -> None:
    with pytest.raises(SettingError, match="weights"):
        weighted_sum([A, B], weights=weights, k=3)


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="constant 0"):
        reciprocal_rank_fusion([A], k=3, constant=0)
    with pytest.raises(SettingError, match="top-k 0"):
        reciprocal_rank_fusion([A], k=0)
    with pytest.raises(SettingError, match="normalisation 'rank': choose from min-max, none, z-score"):
        weighted_sum([A], weights=[1], k=3, normalisation="rank")
