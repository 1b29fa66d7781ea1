"""BM25 in one pass over a corpus: the same results as in memory, whatever the blocks, and nothing lost on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.retrieval import corpus as corpus_module
from qilin_tasks.retrieval import postings, term_scan
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.char_tables import hash_text
from qilin_tasks.retrieval.corpus import JsonLinesCorpus
from qilin_tasks.retrieval.corpus_bm25 import search_corpus
from qilin_tasks.retrieval.term_scan import CjkScanner, PlainScanner
from qilin_tasks.retrieval.texts import ArrowTexts, ListTexts
from qilin_tasks.retrieval.topk import TopK, order_by_score
from qilin_tasks.text.analyzers import analyze_zh

# Everything that the tokenizer's grammar treats in a way of its own, in few characters so that they meet often.
ODD = "中好的ラーｶﾞｯあ한국abZ1２,.:'’·_# \n❤️👍🏻👩‍🇨🇳⃣®ℹⓂ々\u0301\ufe0e\U000e0067กำא\"Ａ，；\ud800"


def json_lines(path: Path, documents: Sequence[tuple[str, str | None]]) -> JsonLinesCorpus:
    path.write_text("".join(json.dumps({"id": name, "contents": text}) + "\n" for name, text in documents), "utf-8")
    return JsonLinesCorpus(path)


def same_occurrences(texts: list[str]) -> None:
    terms = sorted({term for text in texts for term in analyze_zh(text)})
    plain = PlainScanner(terms, analyze=analyze_zh).scan(ListTexts(texts))
    arrays = CjkScanner(terms).scan(ListTexts(texts))
    assert arrays.lengths.tolist() == plain.lengths.tolist()
    counts = [Counter(zip(found.texts.tolist(), found.terms.tolist(), strict=True)) for found in (plain, arrays)]
    assert counts[0] == counts[1]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.text(alphabet=ODD, max_size=12), max_size=5))
def test_arrays_find_what_the_analyzer_finds(texts: list[str]) -> None:
    same_occurrences(texts)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=4))
def test_arrays_find_what_the_analyzer_finds_in_any_text(texts: list[str]) -> None:
    same_occurrences(texts)


def test_arrays_find_what_the_analyzer_finds_in_real_notes(shared: Path) -> None:
    from support.dqa_folder import real_notes

    same_occurrences([f"{title} {content}" for title, content in real_notes(shared)])


@pytest.mark.parametrize("text", ["中\u200d", "中\u0301", "中\u0301国", "中\ufe0f", "中\U000e0067\u200d国"])
def test_marks_behind_ideographs_where_there_is_no_other_word(text: str) -> None:
    same_occurrences([text])
    same_occurrences(["好的", text, "中国"])


def test_long_words_are_cut_in_both() -> None:
    same_occurrences(["a" * 300, "好" * 300, "カ" * 300, "𝒜" * 130 + "好的"])


def test_pairs_are_found_without_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_scan, "LARGEST_TABLE", 0)
    same_occurrences(["中文好的中文", "好中"])


def test_no_words_of_a_vocabulary_share_a_hash(shared: Path) -> None:
    text = (shared / "data" / "xquad" / "xquad.en.json").read_text("utf-8")
    words = set(text.split())
    assert len({hash_text(word[:200]) for word in words}) == len({word[:200] for word in words})


def test_arrow_texts_are_title_blank_content() -> None:
    import pyarrow as pa

    titles, contents = pa.array(["题", None, "a", "跳"]), pa.array(["文😀", "b", None, "过"])
    texts = ArrowTexts(titles.slice(0, 3), contents.slice(0, 3))
    assert texts.tolist() == ["题 文😀", " b", "a "]
    assert texts.tolist(np.array([1])) == [" b"]
    codes, starts = texts.code_points()
    assert "".join(map(chr, codes.tolist())) == "题 文😀  b a  "
    assert starts.tolist() == [0, 5, 8, 11]
    assert ArrowTexts(titles.slice(3), contents.slice(3)).code_points()[0].tolist() == [ord("跳"), 32, ord("过"), 32]


QUERIES = {
    "zh": ["超级碗", "丹佛野马队 的", "，", "the"],
    "en": ["Denver Broncos", "who won the game", "the", ""],
    "th": ["ทีม", "ใคร ชนะ"],
}


@pytest.mark.parametrize("language", sorted(QUERIES))
def test_blocks_give_what_memory_gives(
    language: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles = json.loads((shared / "data" / "xquad" / f"xquad.{language}.json").read_text("utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    texts = texts[:100] if language == "th" else texts
    questions = [qa["question"] for article in articles for p in article["paragraphs"] for qa in p["qas"]]
    queries = [*QUERIES[language], *questions[:: 200 if language == "th" else 20]]
    ids = [str(position) for position in range(len(texts))]
    corpus = json_lines(tmp_path / "corpus.jsonl", list(zip(ids, texts, strict=True)))
    monkeypatch.setattr(postings, "BLOCK", 60)
    monkeypatch.setattr(postings, "BATCH", 20)
    found = search_corpus(queries, corpus, language=language, k=20, folder=tmp_path)
    index = BM25(texts, language=language, ids=ids)
    for query, ranking in zip(queries, found, strict=True):
        assert ranking == [(ids[position], score) for position, score in index.search(query, k=20)], query
    assert len(list(tmp_path.glob("block-*.npz"))) == -(-len(texts) // 60)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(st.text(alphabet="苹果梨 a", max_size=6), min_size=1, max_size=40),
    queries=st.lists(st.text(alphabet="苹果梨 a", max_size=6), max_size=4),
    k=st.integers(1, 5),
)
def test_any_blocks_give_what_memory_gives(
    documents: list[str], queries: list[str], k: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    ids = [str(7 * position) for position in range(len(documents))]
    corpus = json_lines(folder / "corpus.jsonl", list(zip(ids, documents, strict=True)))
    index = BM25(documents, language="zh", ids=ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "BLOCK", 8)
        patch.setattr(postings, "BATCH", 4)
        found = search_corpus(queries, corpus, language="zh", k=k, folder=folder)
    assert found == [[(ids[p], score) for p, score in index.search(query, k=k)] for query in queries]


def test_finished_blocks_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BLOCK", 4)
    monkeypatch.setattr(postings, "BATCH", 2)
    corpus = json_lines(tmp_path / "corpus.jsonl", [(str(number), f"苹果 {number}") for number in range(10)])
    first = search_corpus(["苹果"], corpus, language="zh", k=3, folder=tmp_path)
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("block-*.npz")}
    (tmp_path / "block-00001.npz").write_bytes((tmp_path / "block-00001.npz").read_bytes()[:100])
    assert search_corpus(["苹果"], corpus, language="zh", k=3, folder=tmp_path) == first
    again = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("block-*.npz")}
    assert times["block-00000.npz"] == again["block-00000.npz"]
    assert times["block-00001.npz"] != again["block-00001.npz"]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blank=st.lists(st.booleans(), max_size=30), every=st.integers(1, 5), start=st.integers(0, 30))
def test_json_lines_can_be_read_from_any_document_on(
    blank: list[bool], every: int, start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "corpus.jsonl"
    lines = ["" if empty else json.dumps({"id": f"é{n}", "contents": "x" * n}) for n, empty in enumerate(blank)]
    path.write_text("\n".join([*lines, '{"id": "last", "contents": null}', "damaged"]), "utf-8")
    ids = [f"é{number}" for number, empty in enumerate(blank) if not empty] + ["last"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "MARK_EVERY", every)
        corpus = JsonLinesCorpus(path)
        assert corpus.count == len(ids) + 1
    read = []
    with pytest.raises(DataError, match=f"line {len(blank) + 2}: 'damaged'"):
        for batch in corpus.batches(1, start=min(start, len(ids))):
            read += batch.ids.tolist()
    assert read == ids[start:]


def test_repeated_ids_are_refused(tmp_path: Path) -> None:
    corpus = json_lines(tmp_path / "corpus.jsonl", [("a", "苹果"), ("b", "梨子"), ("a", "桃子")])
    with pytest.raises(DataError, match=r"1 document ids occur more than once \(a\)"):
        search_corpus(["苹果"], corpus, language="zh", k=3, folder=tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "b"}', "line 2.*contents"),
        ("[1, 2]", "line 2"),
        ("not json", "line 2: 'not json'"),
        ('{"id": "", "contents": "x"}', "line 2: id ''"),
        ('{"id": "b c", "contents": "x"}', "holds blanks"),
        ('{"id": "b", "contents": 5}', "contents is int"),
    ],
)
def test_lines_that_are_no_documents_are_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": "a", "contents": null}\n' + line + "\n", "utf-8")
    with pytest.raises(DataError, match=message):
        list(JsonLinesCorpus(path).batches(10))


def test_an_empty_collection_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataError, match="no document"):
        _ = JsonLinesCorpus(tmp_path / "empty.jsonl").count


def test_top_k_orders_ties_by_id_as_text() -> None:
    ids = np.array([2, 10, 1, 9])
    assert ids[order_by_score(np.ones(4), ids)].tolist() == [1, 10, 2, 9]
    best = TopK(1, k=2)
    best.add(0, np.ones(2, dtype=np.float32), ids[:2])
    best.add(0, np.ones(2, dtype=np.float32), ids[2:])
    assert best.rankings() == [[(1, 1.0), (10, 1.0)]]
    with pytest.raises(SettingError, match="top-k 0"):
        TopK(1, k=0)


@given(st.lists(st.integers(0, 10**15)))
def test_numbers_are_ordered_as_text(values: list[int]) -> None:
    ids = np.array(values, dtype=np.int64)
    assert ids[order_by_score(np.zeros(len(ids)), ids)].tolist() == sorted(values, key=str)
