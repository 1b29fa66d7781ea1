from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.metrics.hits import Hits, hit_ranks
from qilin_tasks.metrics.ranking import (
    QILIN_MEASURES,
    RANKING_METRICS,
    parse_measure,
    repair,
    score_hits,
    score_ranking,
)
from qilin_tasks.metrics.ranking_runs import evaluate_run

ALL_MEASURES = [f"{name}@{k}" for name in RANKING_METRICS for k in (1, 3, 10, 100)]


@pytest.mark.parametrize(
    ("ranking", "relevant", "measure", "value"),
    [
        ("abcde", "b", "mrr@10", 1 / 2),
        ("abcde", "e", "mrr@4", 0),
        ("abcde", "bd", "map@10", (1 / 2 + 2 / 4) / 2),
        ("abcde", "bdxyz", "map@2", (1 / 2) / 2),
        ("abcde", "bdxyz", "map_paper@2", (1 / 2) / 5),
        ("abcde", "bd", "map_paper@10", (1 / 2 + 2 / 4) / 2),
        ("abcde", "adx", "recall@3", 1 / 3),
        ("abcde", "ab", "precision@10", 2 / 10),
        ("abcde", "abc", "ndcg@3", 1),
        ("abcde", "bx", "ndcg@10", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("abcde", "c", "success@3", 1),
        ("abcde", "d", "success@3", 0),
        ("", "a", "map@10", 0),
        ("abc", "", "map@10", 0),
        ("abc", "", "recall@10", 0),
        ("abc", "", "ndcg@10", 0),
        ("abc", "", "mrr@10", 0),
    ],
)
def test_hand_computed(ranking: str, relevant: str, measure: str, value: float) -> None:
    assert score_ranking(ranking, set(relevant), measures=[measure]) == {measure: pytest.approx(value, abs=1e-12)}


def test_averaged_ties_give_fractional_ranks() -> None:
    assert score_hits(Hits.of([(2.5,)], [1]), ["mrr@10"])["mrr@10"].tolist() == [pytest.approx(0.4)]


@pytest.mark.parametrize("measure", ["mrr@0", "mrr", "mrr@x", "mpr@10", "mrr@١", "mrr@-1", ""])
def test_unknown_measures_name_the_choices(measure: str) -> None:
    with pytest.raises(SettingError, match="mrr@"):
        parse_measure(measure)


def test_repair_appends_the_rest_in_shown_order() -> None:
    assert repair([3, 1], [5, 4, 3, 2, 1]) == [3, 1, 5, 4, 2]


rankings = st.integers(0, 12).flatmap(lambda n: st.permutations(range(n)))
relevants = st.sets(st.integers(0, 15), max_size=8)


@settings(deadline=None)
@given(rankings, relevants)
def test_every_metric_lies_in_the_unit_interval(ranking: list[int], relevant: set[int]) -> None:
    assert all(0 <= value <= 1 + 1e-12 for value in score_ranking(ranking, relevant, measures=ALL_MEASURES).values())


@settings(deadline=None)
@given(rankings, relevants, st.data())
def test_moving_a_relevant_item_up_never_lowers_a_metric(
    ranking: list[int], relevant: set[int], data: st.DataObject
) -> None:
    places = [i for i in range(1, len(ranking)) if ranking[i] in relevant]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    better = [*ranking]
    better[place - 1], better[place] = better[place], better[place - 1]
    before = score_ranking(ranking, relevant, measures=ALL_MEASURES)
    after = score_ranking(better, relevant, measures=ALL_MEASURES)
    assert all(after[measure] >= before[measure] - 1e-12 for measure in ALL_MEASURES)


@settings(deadline=None)
@given(st.sets(st.integers(0, 15), min_size=1, max_size=8))
def test_a_perfect_ranking_gets_one(relevant: set[int]) -> None:
    ranking = [*sorted(relevant), *(i for i in range(16) if i not in relevant)]
    values = score_ranking(
        ranking, relevant, measures=["mrr@10", "map@3", "map@10", "ndcg@3", "recall@10", "success@1"]
    )
    assert all(value == pytest.approx(1) for value in values.values())


query_ids = st.sampled_from([0, 1, 2, 7])
pairs = st.tuples(query_ids, st.integers(0, 9))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(pairs, min_size=1, max_size=30, unique=True),
    st.lists(pairs, min_size=1, max_size=15),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_the_vectorised_metrics_are_the_per_query_metrics(
    ranked: list[tuple[int, int]], qrels: list[tuple[int, int]], text_ids: bool, shuffler: random.Random
) -> None:
    run = {pair: -float(place) for place, pair in enumerate(ranked)}
    kind = (lambda ids: np.array([f"id{i}" for i in ids])) if text_ids else np.array
    rows = list(run.items())
    shuffler.shuffle(rows)
    judged = {q for q, _ in qrels}
    if not judged & {q for q, _ in run}:
        return
    result = evaluate_run(
        query_ids=kind([q for (q, _), _ in rows]),
        candidate_ids=kind([c for (_, c), _ in rows]),
        scores=np.array([score for _, score in rows]),
        qrel_query_ids=kind([q for q, _ in qrels]),
        qrel_candidate_ids=kind([c for _, c in qrels]),
        measures=ALL_MEASURES,
    )
    expected_queries = sorted(judged & {q for q, _ in run})
    assert result.query_ids.tolist() == kind(expected_queries).tolist()
    assert result.unjudged == len({q for q, _ in run} - judged)
    assert result.unranked == len(judged - {q for q, _ in run})
    for i, query in enumerate(expected_queries):
        scored = {c: score for (q, c), score in run.items() if q == query}
        relevant = [c for q, c in qrels if q == query]
        values = score_ranking(
            sorted(scored, key=lambda c: -scored[c]), set(relevant), measures=ALL_MEASURES, n_relevant=len(relevant)
        )
        for measure in ALL_MEASURES:
            assert result.values[measure][i] == pytest.approx(values[measure], abs=1e-12)


def _fixture(shared: Path, config: str, qrels: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(shared / "fixtures" / "ranking" / f"{config}_run.csv.gz", "rt") as file:
        run = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    return run, np.loadtxt(shared / "data" / "qilin" / qrels, delimiter=",", skiprows=1, dtype=np.int64)


FIXTURES = [("search", "search.test.qrels.csv"), ("recommendation", "recommendation.test.qrels.csv")]


@pytest.mark.parametrize(("config", "qrels"), FIXTURES)
def test_the_official_code_gives_the_same(shared: Path, config: str, qrels: str) -> None:
    # fixtures/ranking/*_expected.json: the metric code of RED-Search/Qilin on these two runs.
    expected = json.loads((shared / "fixtures" / "ranking" / f"{config}_expected.json").read_text())
    run, relevant = _fixture(shared, config, qrels)
    result = evaluate_run(
        query_ids=run[:, 0],
        candidate_ids=run[:, 1],
        scores=run[:, 2],
        qrel_query_ids=relevant[:, 0],
        qrel_candidate_ids=relevant[:, 1],
        measures=[measure.lower() for measure in expected],
    )
    assert len(result.query_ids) == 1000
    assert result.unjudged == 0
    for measure, value in expected.items():
        assert result.means()[measure.lower()] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("config", "qrels"), FIXTURES)
def test_a_constant_scorer_gets_what_chance_gives_on_the_official_qrels(shared: Path, config: str, qrels: str) -> None:
    run, relevant = _fixture(shared, config, qrels)
    result = evaluate_run(
        query_ids=run[:, 0],
        candidate_ids=run[:, 1],
        scores=np.zeros(len(run)),
        qrel_query_ids=relevant[:, 0],
        qrel_candidate_ids=relevant[:, 1],
        measures=["mrr@10"],
    )
    clicks = {tuple(pair) for pair in relevant.tolist()}
    expected = []
    for query in range(1000):
        shown = run[run[:, 0] == query, 1]
        expected.append(_chance_of_mrr(len(shown), sum((query, int(note)) in clicks for note in shown), k=10))
    difference = result.values["mrr@10"] - np.array(expected)
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / math.sqrt(1000)


def _chance_of_mrr(n: int, hits: int, *, k: int) -> float:
    none_before, total = 1.0, 0.0
    for rank in range(1, min(n, k) + 1):
        here = hits / (n - rank + 1)
        total += none_before * min(here, 1) / rank
        none_before *= 1 - min(here, 1)
    return total


def test_ir_measures_agrees_where_the_definitions_do() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, P, R, Success, nDCG

    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(60), 40)
    candidate = np.tile(np.arange(40), 60)
    score = rng.permutation(len(query)).astype(float)
    relevant = rng.random(len(query)) < 0.1
    result = evaluate_run(
        query_ids=query,
        candidate_ids=candidate,
        scores=score,
        qrel_query_ids=np.r_[query[relevant], np.arange(60)],
        qrel_candidate_ids=np.r_[candidate[relevant], np.full(60, 99)],  # one relevant item nobody ranked
        measures=["mrr@10", "map_paper@10", "map_paper@100", "recall@10", "precision@10", "ndcg@10", "success@5"],
    )
    qrels = [ir_measures.Qrel(str(q), str(c), 1) for q, c in zip(query[relevant], candidate[relevant], strict=True)]
    qrels += [ir_measures.Qrel(str(q), "99", 1) for q in range(60)]
    run = [ir_measures.ScoredDoc(str(q), str(c), s) for q, c, s in zip(query, candidate, score, strict=True)]
    theirs = {
        "mrr@10": RR @ 10,
        "map_paper@10": AP @ 10,
        "map_paper@100": AP @ 100,
        "recall@10": R @ 10,
        "precision@10": P @ 10,
        "ndcg@10": nDCG @ 10,
        "success@5": Success @ 5,
    }
    values = ir_measures.calc_aggregate(list(theirs.values()), qrels, run)
    for measure, name in theirs.items():
        assert result.means()[measure] == pytest.approx(values[name], abs=1e-9)


def _evaluate(run: list[tuple], qrels: list[tuple]) -> None:
    evaluate_run(
        query_ids=np.array([row[0] for row in run]),
        candidate_ids=np.array([row[1] for row in run]),
        scores=np.array([row[2] for row in run]),
        qrel_query_ids=np.array([row[0] for row in qrels]),
        qrel_candidate_ids=np.array([row[1] for row in qrels]),
    )


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ([(1, 2, 0.5), (1, 3, math.nan)], [(1, 2)], r"1 score\(s\) of the run are NaN.*query 1, candidate 3"),
        ([(1, 2, 0.5), (1, 2, 0.4)], [(1, 2)], r"1 \(query, candidate\) pair\(s\).*query 1, candidate 2"),
        ([(1, 2, 0.5)], [(4, 2)], r"first 1\).*first 4\).*row number"),
        ([("a", "b", 0.5), ("a", "b", 0.4)], [("a", "b")], r"query a, candidate b"),
    ],
)
def test_bad_runs_are_named(run: list[tuple], qrels: list[tuple], message: str) -> None:
    with pytest.raises(DataError, match=message):
        _evaluate(run, qrels)


def test_measures_of_table_10_come_in_its_order() -> None:
    assert QILIN_MEASURES[:4] == ("mrr@10", "mrr@100", "map@10", "map@100")
    assert hit_ranks([5, 6, 7], {7, 5}) == (1, 3)
