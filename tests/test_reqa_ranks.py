"""Ranks by the official protocol, and rankings of candidates against a plain reimplementation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from qilin_tasks.metrics.metric import rows
from qilin_tasks.reqa.pools import load_pool
from qilin_tasks.reqa.rankings import CandidateRanks, Judged, candidate_ranks
from qilin_tasks.reqa.ranks import best_rank, document_scores
from qilin_tasks.reqa.scorer import METRICS, RankedSentences
from qilin_tasks.retrieval.bm25 import BM25

SCORES = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=12)


@given(SCORES, st.data())
def test_best_rank_is_scipys_average_rank(scores: list[float], data: st.DataObject) -> None:
    relevant = data.draw(st.lists(st.integers(0, len(scores) - 1), min_size=1))
    array = np.array(scores)
    assert best_rank(array, relevant) == min(rankdata(-array, method="average")[relevant])


@given(st.integers(1, 40), st.data())
def test_a_constant_scorer_never_beats_chance(n: int, data: st.DataObject) -> None:
    """Chance: the mean of 1/rank over a random order of n with one relevant is H_n / n."""
    position = data.draw(st.integers(0, n - 1))
    harmonic = sum(1 / rank for rank in range(1, n + 1)) / n
    rank = best_rank(np.zeros(n), [position])
    assert rank == (n + 1) / 2
    assert 1 / rank <= harmonic + 1e-12


def test_document_scores_by_hand() -> None:
    assert document_scores(np.array([1.0, 3.0, 2.0, 0.5]), np.array([0, 0, 1, 2])).tolist() == [3.0, 2.0, 0.5]


RANKED = ("mrr", "r@1", "r@5", "r@10", "doc_mrr")


def values_of(ranks: dict[str, CandidateRanks], count: int) -> list[dict[str, float]]:
    """The table's columns over ranks."""
    batch = RankedSentences([{}] * count, ranks, [])
    names = [name for name in METRICS if name.removesuffix("_repaired") in RANKED or name == "candidate_recall"]
    return rows({name: METRICS[name].score(batch) for name in names})


def score_rankings(rankings: list[list[int]], judged: list[Judged]) -> list[dict[str, float]]:
    return values_of(candidate_ranks(rankings, judged), len(rankings))


def rank_values(rank: float, document_rank: float) -> dict[str, float]:
    ranks = CandidateRanks(np.array([rank]), np.array([document_rank]), np.array([True]))
    return {name: values_of({"": ranks, "_repaired": ranks}, 1)[0][name] for name in RANKED}


def test_rank_values_by_hand() -> None:
    assert rank_values(2.5, 1.0) == {"mrr": 0.4, "r@1": 0.0, "r@5": 1.0, "r@10": 1.0, "doc_mrr": 1.0}
    assert set(rank_values(math.inf, math.inf).values()) == {0.0}


def plain(ranking: list[int], judged: Judged) -> dict[str, float]:
    """One question, step by step."""
    n = len(judged.owners)
    repaired = ranking + [number for number in range(1, n + 1) if number not in ranking]
    values: dict[str, float] = {}
    for suffix, order in (("", ranking), ("_repaired", repaired)):
        hits = [rank for rank, number in enumerate(order, start=1) if number in judged.relevant]
        documents = list(dict.fromkeys(judged.owners[number - 1] for number in order))
        found = [rank for rank, document in enumerate(documents, start=1) if document in judged.documents]
        values[f"mrr{suffix}"] = 1 / hits[0] if hits else 0.0
        for cutoff in (1, 5, 10):
            values[f"r@{cutoff}{suffix}"] = float(bool(hits) and hits[0] <= cutoff)
        values[f"doc_mrr{suffix}"] = 1 / found[0] if found else 0.0
    values["candidate_recall"] = float(bool(judged.relevant))
    return values


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[int], Judged]:
    n = draw(st.integers(1, 13))
    ids = list(range(1, n + 1))
    ranking = draw(st.permutations(ids))[: draw(st.integers(0, n))]
    owners = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    relevant = draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))
    documents = draw(st.lists(st.integers(0, 7), unique=True, max_size=3))
    return list(ranking), Judged(relevant, owners, documents)


@given(st.lists(questions(), max_size=6))
def test_vectorised_equals_plain(rows: list[tuple[list[int], Judged]]) -> None:
    got = score_rankings([ranking for ranking, _ in rows], [judged for _, judged in rows])
    for (ranking, judged), values in zip(rows, got, strict=True):
        assert values == pytest.approx(plain(ranking, judged), abs=1e-12)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [([(k % 5) + 1], Judged([1, 3], [0, 0, 1, 2, 2], [0])) for k in range(23)]
    whole = score_rankings([r for r, _ in rows], [j for _, j in rows])
    monkeypatch.setattr("qilin_tasks.reqa.rankings._CHUNK", 4)
    assert score_rankings([r for r, _ in rows], [j for _, j in rows]) == whole


def test_bm25_over_xquad_en_equals_ir_measures(shared: Path) -> None:
    """All questions over the whole pool: our MRR and R@1/5/10 equal those of ir_measures 0.4.3 to 1e-9.

    ReQA averages ties, ir_measures breaks them: both get the scores with ties broken by position.
    """
    import ir_measures

    pool = load_pool("xquad_en", spec=str(shared / "data"))
    index = BM25(pool.candidates, language="en")
    rows, qrels, run = [], [], []
    for question in pool.questions:
        order = np.argsort(-index.scores(question.text), kind="stable")
        scores = np.empty(len(order))
        scores[order] = np.arange(len(order), 0, -1)
        rank = best_rank(scores, question.gold)
        rows.append(rank_values(rank, 1.0))
        qrels += [ir_measures.Qrel(question.key, str(position), 1) for position in question.gold]
        run += [ir_measures.ScoredDoc(question.key, str(n), float(scores[n])) for n in order[: int(rank) + 10]]
    measures = {
        "mrr": ir_measures.RR,
        "r@1": ir_measures.Success @ 1,
        "r@5": ir_measures.Success @ 5,
        "r@10": ir_measures.Success @ 10,
    }
    theirs = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    assert len(rows) == 1187
    for name, measure in measures.items():
        assert np.mean([row[name] for row in rows]) == pytest.approx(theirs[measure], abs=1e-9)


def test_bm25_over_xquad_en_is_what_the_readme_says(shared: Path) -> None:
    """`python benchmarks/reqa_bm25.py --set xquad_en`; a sketch over the official sentences: .818 .738 .915 .941."""
    pool = load_pool("xquad_en", spec=str(shared / "data"))
    index = BM25(pool.candidates, language="en")
    rows = [rank_values(best_rank(index.scores(q.text), q.gold), 1.0) for q in pool.questions]
    means = [round(float(np.mean([row[name] for row in rows])), 3) for name in ("mrr", "r@1", "r@5", "r@10")]
    assert means == [0.818, 0.737, 0.914, 0.939]
