"""BM25 against Anserini's run over XQuAD-zh, against bm25s, and by hand."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.errors import SettingError
from qilin_tasks.retrieval.bm25 import BM25, best, text_order
from qilin_tasks.retrieval.bm25_weights import encode_lengths, length_table


def xquad(shared: Path, language: str) -> tuple[list[str], dict[str, str]]:
    articles = json.loads((shared / "data" / "xquad" / f"xquad.{language}.json").read_text("utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = {qa["id"]: qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]}
    return [paragraph["context"] for paragraph in paragraphs], questions


def test_chinese_ranks_and_scores_are_anserinis(shared: Path) -> None:
    # fixtures/bm25: Anserini 1.7.1, `-language zh -bm25 -hits 10`; scores are printed with four decimals
    expected: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for line in (shared / "fixtures" / "bm25" / "anserini_zh_xquad_top10.run").read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        expected[topic].append((document, float(score)))
    documents, questions = xquad(shared, "zh")
    ids = [str(position) for position in range(len(documents))]
    index = BM25(documents, language="zh", ids=ids)
    assert len(expected) == len(questions) == 1190
    for topic, question in questions.items():
        found = index.search(question, k=10)
        assert [ids[position] for position, _ in found] == [document for document, _ in expected[topic]], topic
        assert [score for _, score in found] == pytest.approx([score for _, score in expected[topic]], abs=1e-4)


def test_english_scores_are_those_of_bm25s(shared: Path) -> None:
    # bm25s 0.3.16, method="lucene": the same formula with exact lengths, so documents of up to 39 terms agree
    import bm25s

    documents, questions = xquad(shared, "en")
    short = [" ".join(document.split()[:30]) for document in documents]
    index = BM25(short, language="en")
    analyze = index.analyze
    other = bm25s.BM25(method="lucene", k1=0.9, b=0.4, dtype="float64")
    other.index([analyze(document) for document in short], show_progress=False)
    for question in list(questions.values())[:200]:
        terms = [term for term in analyze(question) if term in other.vocab_dict]
        reference = other.get_scores(terms) if terms else np.zeros(len(short))
        assert index.scores(question) == pytest.approx(reference, abs=2e-5)


def test_score_by_hand() -> None:
    # N = 2, avgdl = 2.5, idf = ln(1 + 1.5 / 1.5), tf part = 2 / (2 + 0.9 (0.6 + 0.4 * 3 / 2.5))
    index = BM25(["苹 苹 果", "梨 桃"], language="zh")
    assert index.scores("苹") == pytest.approx([math.log(2) * 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2.5)), 0])
    assert index.scores("苹 苹") == pytest.approx(2 * index.scores("苹"))


def test_empty_documents_and_queries() -> None:
    with_empty = BM25(["", "苹果", "，", "梨子"], language="zh")
    assert with_empty.scores("苹果")[1] == BM25(["苹果", "梨子"], language="zh").scores("苹果")[0]
    assert with_empty.search("？", k=3) == []
    assert with_empty.search("香蕉", k=3) == []
    assert BM25([], language="zh").search("苹果", k=1) == []
    assert BM25(["", ""], language="en").search("apple", k=1) == []


def test_ties_go_by_position_or_by_id_as_text() -> None:
    documents = ["苹果"] * 12
    assert [position for position, _ in BM25(documents, language="zh").search("苹果", k=3)] == [0, 1, 2]
    by_id = BM25(documents, language="zh", ids=[str(position) for position in range(12)])
    assert [position for position, _ in by_id.search("苹果", k=4)] == [0, 1, 10, 11]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k1": -1.0}, "k1 -1.0: choose"),
        ({"b": 1.5}, "b 1.5: choose"),
        ({"language": "xx"}, "language 'xx': choose from ar, bg, bn, "),
        ({"ids": ["1"]}, "1 ids for 2 documents"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        BM25(["苹果", "梨子"], **{"language": "zh", **settings})  # type: ignore[arg-type]


def test_k_below_one_is_refused() -> None:
    with pytest.raises(SettingError, match="k 0: choose"):
        BM25(["苹果"], language="zh").search("苹果", k=0)


def test_length_codes_are_lucenes_small_floats() -> None:
    # SmallFloat.byte4ToInt of Lucene 10: exact to 39 (code 39), then steps of 2, 4, ...; the last is 2013265944
    table = length_table()
    assert table[:41].tolist() == list(range(41))
    assert table[[40, 41, 48, 49, 255]].tolist() == [40, 42, 56, 60, 2013265944]
    assert table[encode_lengths(np.array([0, 41, 55, 100]))].tolist() == [0, 40, 54, 96]


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_encoded_lengths_never_exceed_the_real_ones_nor_lose_an_eighth(lengths: list[int]) -> None:
    decoded = length_table()[encode_lengths(np.array(lengths, dtype=np.int64))]
    assert all(kept <= length <= kept * 1.125 for kept, length in zip(decoded, lengths, strict=True))


@given(st.lists(st.text(alphabet="苹果梨 ，", max_size=8), max_size=8), st.text(alphabet="苹果梨 ", max_size=6))
def test_search_is_the_sorted_scores(documents: list[str], query: str) -> None:
    index = BM25(documents, language="zh")
    scores = index.scores(query)
    order = sorted((-score, position) for position, score in enumerate(scores) if score > 0)
    assert index.search(query, k=3) == [(position, -score) for score, position in order[:3]]


@given(st.lists(st.text(alphabet="苹果梨", min_size=1, max_size=4), min_size=1, max_size=6))
def test_scores_move_with_the_documents(documents: list[str]) -> None:
    forward = BM25(documents, language="zh").scores("苹果梨")
    backward = BM25(documents[::-1], language="zh").scores("苹果梨")
    assert forward.tolist() == backward[::-1].tolist()


@given(st.lists(st.integers(0, 4)), st.integers(1, 6))
def test_best_agrees_with_a_full_sort(values: list[int], k: int) -> None:
    expected = sorted((position for position, value in enumerate(values) if value), key=lambda p: (-values[p], p))
    assert best(np.array(values), k=k).tolist() == expected[:k]


def test_text_order_sorts_ids_as_text() -> None:
    assert text_order(["2", "10", "1"]).tolist() == [2, 1, 0]
