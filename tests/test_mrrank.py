"""MrRank's RankNet and routing: what they learn from planted rankings, how they are saved, what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.retrieval.mrrank import train_ranknet
from qilin_tasks.retrieval.rank_features import PER_RANKING, document_features, query_features
from qilin_tasks.retrieval.ranker_file import load_ranker, save_ranker
from qilin_tasks.retrieval.routing import reciprocal_rank, train_router

Ranking = list[tuple[Any, float]]


def planted(number: int, *, seed: int) -> tuple[list[list[Ranking]], list[set[int]]]:
    """A good retriever and a noisy one: the answer is document 0, first in the good one three times of four.

    Where the good one fails its scores are low, which a router can see.
    """
    generator = np.random.default_rng(seed)
    queries, relevant = [], []
    for _ in range(number):
        fails = generator.random() < 0.25
        good = generator.normal(0, 1, 12)
        good[0] += 0.0 if fails else 6.0
        noisy = generator.normal(0, 1, 12)
        noisy[0] += 2.5
        queries.append([sorted(enumerate(scores.tolist()), key=lambda item: -item[1])[:10] for scores in (good, noisy)])
        relevant.append({0})
    return queries, relevant


def mean_rr(rankings: list[Any], relevant: list[set[int]]) -> float:
    return float(
        np.mean([reciprocal_rank(ranking, wanted) for ranking, wanted in zip(rankings, relevant, strict=True)])
    )


def test_features_by_hand() -> None:
    pool, features = document_features([[("a", 4.0), ("b", 2.0), ("c", 1.0)], [("b", 9.0)]], depth=2)
    assert pool == ["a", "b"]
    assert features.shape == (2, 2 * len(PER_RANKING))
    named = dict(zip(PER_RANKING, features[0], strict=False))
    assert named["min-max"] == 1 and named["1/rank"] == 1 and named["score"] == 4 and named["lead of the best"] == 2
    second = dict(zip(PER_RANKING, features[0, len(PER_RANKING) :], strict=True))
    assert second["1/rank"] == 0 and second["log rank"] == pytest.approx(np.log(3)) and second["score"] == 9
    assert query_features([[("a", 4.0), ("b", 2.0)], [("b", 9.0)]], depth=2).tolist() == [4, 2, 1, 1, 9, 0, 0, 0.5, 0.1]
    assert document_features([[], []], depth=5)[1].shape == (0, 2 * len(PER_RANKING))


@given(
    rankings=st.lists(
        st.dictionaries(st.integers(0, 15), st.floats(-50, 50), max_size=12).map(
            lambda scores: sorted(scores.items(), key=lambda item: -item[1])
        ),
        min_size=2,
        max_size=3,
    ),
    depth=st.integers(1, 12),
    data=st.data(),
)
def test_a_main_run_bounds_the_pool_and_changes_no_feature(
    rankings: list[Ranking], depth: int, data: st.DataObject
) -> None:
    main = data.draw(st.integers(0, len(rankings) - 1))
    pool, features = document_features(rankings, depth=depth)
    bounded, fewer = document_features(rankings, depth=depth, main=main)
    assert bounded == [name for name, _ in rankings[main][:depth]]
    assert np.array_equal(fewer, features[[pool.index(name) for name in bounded]])


def test_a_ranker_with_a_main_run_shows_its_documents_only(tmp_path: Path) -> None:
    train, relevant = planted(60, seed=0)
    model = train_ranknet(train, relevant, depth=5, seed=0, main=1)
    save_ranker(tmp_path / "r.npz", model, recipe={})
    loaded = load_ranker(tmp_path / "r.npz", kind="mrrank")
    for rankings in train:
        assert {name for name, _ in loaded.rank(rankings, k=10)} == {name for name, _ in rankings[1][:5]}


def test_a_ranker_file_of_before_the_main_run_still_ranks(tmp_path: Path) -> None:
    train, relevant = planted(60, seed=0)
    model = train_ranknet(train, relevant, depth=10, seed=0)
    save_ranker(tmp_path / "r.npz", model, recipe={})
    with np.load(tmp_path / "r.npz") as stored:
        np.savez(tmp_path / "old.npz", **{name: stored[name] for name in stored if name != "main"})
    assert load_ranker(tmp_path / "old.npz", kind="mrrank").rank(train[0], k=5) == model.rank(train[0], k=5)


def test_the_ranker_beats_both_retrievers_on_unseen_queries() -> None:
    train, relevant = planted(300, seed=0)
    model = train_ranknet(train, relevant, depth=10, seed=0)
    test, answers = planted(300, seed=1)
    ours = mean_rr([model.rank(rankings, k=10) for rankings in test], answers)
    single = [mean_rr([rankings[number] for rankings in test], answers) for number in (0, 1)]
    assert ours > max(single) + 0.02


def test_the_router_beats_the_worse_and_never_invents() -> None:
    train, relevant = planted(400, seed=0)
    router = train_router(train, relevant, depth=10, seed=0)
    test, answers = planted(400, seed=1)
    routed = [router.rank(rankings, k=10) for rankings in test]
    assert all(ranking in rankings for ranking, rankings in zip(routed, test, strict=True))
    single = [mean_rr([rankings[number] for rankings in test], answers) for number in (0, 1)]
    assert mean_rr(routed, answers) > max(single)


def test_the_seed_decides_the_model_and_scores_need_no_torch() -> None:
    train, relevant = planted(60, seed=0)
    first, again, other = (train_ranknet(train, relevant, depth=10, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.hidden, again.hidden) and not np.array_equal(first.hidden, other.hidden)
    features = document_features(train[0], depth=10)[1]
    standard = (features - first.mean) / first.deviation
    expected = standard @ first.linear + np.tanh(standard @ first.hidden + first.hidden_bias) @ first.output
    assert first.scores(features) == pytest.approx(expected)


def test_the_order_of_equal_documents_does_not_matter() -> None:
    model = train_ranknet(*planted(60, seed=0), depth=10, seed=0)
    same: list[Ranking] = [[("b", 1.0), ("a", 1.0)], []]
    assert [name for name, _ in model.rank(same, k=5)] in (["a", "b"], ["b", "a"])
    assert model.rank([[], []], k=5) == []


@pytest.mark.parametrize("kind", ["mrrank", "routing"])
def test_saved_models_rank_the_same(kind: str, tmp_path: Path) -> None:
    train, relevant = planted(80, seed=0)
    model = (train_ranknet if kind == "mrrank" else train_router)(train, relevant, depth=10, seed=0)
    path = tmp_path / "ranker.npz"
    save_ranker(path, model, recipe={"seed": 0})
    loaded = load_ranker(path, kind=kind)
    assert loaded.recipe == {"kind": kind, "seed": 0}
    assert [loaded.rank(rankings, k=5) for rankings in train[:9]] == [
        model.rank(rankings, k=5) for rankings in train[:9]
    ]
    before = path.read_bytes()
    save_ranker(path, model, recipe={"seed": 0})
    assert path.read_bytes() == before and load_ranker(path, kind=kind).signature == loaded.signature
    with pytest.raises(DataError, match="asked for"):
        load_ranker(path, kind="routing" if kind == "mrrank" else "mrrank")
    with pytest.raises(DataError, match="not 3: pass the"):
        loaded.rank([[], [], []], k=5)


def test_what_can_not_be_learned_or_read_is_refused(tmp_path: Path) -> None:
    train, _ = planted(5, seed=0)
    for trainer in (train_ranknet, train_router):
        with pytest.raises(DataError):
            trainer(train, [{"nowhere"}] * 5, depth=10, seed=0)
    with pytest.raises(SettingError, match="depth 1"):
        train_ranknet(train, [{0}] * 5, depth=1, seed=0)
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a ranker"):
        load_ranker(tmp_path / "x.npz", kind="mrrank")
