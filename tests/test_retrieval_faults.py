"""What must find nothing or be refused in retrieval: blank texts, scores that are none, rankers out of place."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qilin_tasks.commands import mrrank, retrieve
from qilin_tasks.errors import DataError
from qilin_tasks.retrieval.corpus import ListCorpus
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.pipeline import Settings, Task, retriever
from qilin_tasks.retrieval.rerank import rerank
from qilin_tasks.retrieval.run_identity import check_trained_runs
from qilin_tasks.sources.run_rankings import read_trec
from qilin_tasks.text.tokens import is_blank

DOCUMENTS = ["", "a cat sits", "the dog runs", "\u200b\ufe0f ", "cats and dogs"]


@pytest.mark.parametrize(
    ("text", "blank"),
    [("", True), (" \n\u3000", True), ("\u200b\ufe0f", True), ("a", False), ("?", False), ("🙂", False)],
)
def test_blank(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kind", ["bm25", "dense"])
def test_blank_texts_and_queries_find_nothing(minilm: Path, tmp_path: Path, kind: str, in_memory: bool) -> None:
    from qilin_tasks.retrieval.corpus import JsonLinesCorpus

    path = tmp_path / "corpus.jsonl"
    lines = [json.dumps({"id": number, "contents": text}) for number, text in enumerate(DOCUMENTS)]
    path.write_text("\n".join(lines), "utf-8")
    corpus: Any = ListCorpus(DOCUMENTS) if in_memory else JsonLinesCorpus(path)
    settings = Settings(retriever=kind, language="en", model=str(minilm), backend="sentence-transformers", device="cpu")
    task = Task(queries={"a": "cat", "b": " ", "c": ""}, corpus=corpus, texts=lambda ids: {})
    found = retriever(settings, task).rank(tmp_path)
    assert [len(ranking) for ranking in found[1:]] == [0, 0]
    assert not {0, 3} & {int(name) for name, _ in found[0]}
    assert {int(name) for name, _ in found[0]} >= {1, 4}


def test_a_vector_of_nan_is_never_found() -> None:
    vectors = np.array([[np.nan, np.nan], [1, 0], [0, 1]], dtype=np.float16)
    found = search_vectors(np.array([[1, 0]], dtype=np.float32), vectors, np.array([7, 8, 9]), k=3)
    assert [name for name, _ in found[0]] == [8, 9]


def test_reranking_leaves_blank_texts_out(tmp_path: Path) -> None:
    class Longest:
        signature = "longest"

        def score(self, pairs: Any) -> Any:
            return [len(text) for _, text in pairs]

    held = dict(enumerate(DOCUMENTS))
    first = [[(number, 1.0) for number in held]] * 2
    found = rerank(["cat", ""], first, lambda _: held, Longest(), depth=9, k=9, folder=tmp_path, progress=False)
    assert [[name for name, _ in ranking] for ranking in found] == [[4, 2, 1], []]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN"])
@pytest.mark.parametrize("header", ["", "qid,pid,score\n"])
def test_a_score_that_is_no_number_is_named_with_its_line(tmp_path: Path, value: str, header: str) -> None:
    path = tmp_path / "run.csv"
    path.write_text(f"{header}q1,a,2\n\nq1,b,{value}\n")
    line = 3 + bool(header)
    with pytest.raises(DataError, match=rf"run.csv, line {line}: score {float(value)} is no finite number"):
        read_trec(path)


def test_scores_of_a_run_in_memory_are_checked_too() -> None:
    run = {"q": [("a", 1.0), ("b", float("nan"))]}
    inputs = [(run, {"retriever": "bm25"}), (run, {"retriever": "dense"})]
    task = Task(queries={"q": "x"}, corpus=ListCorpus(["x"]), texts=lambda ids: {}, inputs=inputs)
    for kind in ("rrf", "weighted", "run"):
        with pytest.raises(DataError, match="query q, document b: score nan"):
            retriever(Settings(retriever=kind), task).rank(Path())


def run_of(system: str, identity: str) -> dict[str, str]:
    return {"system": system, "identity": identity}


def test_a_ranker_knows_its_runs() -> None:
    recipe = {"runs": [run_of("bm25", "1"), run_of("dense", "2")]}
    new = [{"trec": "qilin-tasks-bm25", "sha256": "8"}, {"trec": "qilin-tasks-dense", "sha256": "9"}]
    check_trained_runs(Path("r.npz"), recipe, new)
    with pytest.raises(DataError, match=r"runs by bm25, dense, in this order, not dense, bm25"):
        check_trained_runs(Path("r.npz"), recipe, new[::-1])
    with pytest.raises(DataError, match="knows the answers"):
        check_trained_runs(Path("r.npz"), recipe, [{"trec": "qilin-tasks-bm25", "sha256": "1"}, new[1]])


def test_queries_without_hits_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus, topics = tmp_path / "c.jsonl", tmp_path / "t.tsv"
    corpus.write_text(json.dumps({"id": "a", "contents": "cat"}) + "\n")
    # U+2028 is no line end.
    topics.write_text("q1\tcat\u2028cat\nq2\tzebra\nq3\t \n", "utf-8")
    with caplog.at_level(logging.WARNING):
        retrieve.retrieve(corpus, topics, settings=Settings(retriever="bm25", language="en"), out=tmp_path / "r.trec")
    assert "2 of 3 queries found nothing and have no line in this TREC run: q2, q3" in caplog.text


def test_an_encoder_is_no_cross_encoder(minilm: Path) -> None:
    task = Task(queries={"q": "x"}, corpus=ListCorpus(["x"]), texts=lambda ids: {}, inputs=[({}, {})])
    with pytest.raises(DataError, match=r"no trained cross-encoder: weights are missing for classifier"):
        retriever(Settings(retriever="rerank", model=str(minilm)), task)


def test_prompts_change_vectors_and_the_signature(minilm: Path) -> None:
    from qilin_tasks.retrieval.encoders import load_encoder

    for backend in ("sentence-transformers", "mean-pooling"):
        options: dict[str, Any] = {"backend": backend, "batch_size": 4, "max_length": 64, "device": "cpu"}
        bare = load_encoder(str(minilm), **options)
        prompted = load_encoder(str(minilm), **options, query_prompt="query: ", document_prompt="passage: ")
        assert "prompt" not in bare.signature
        assert '"query_prompt": "query: "' in prompted.signature
        for query, prompt in ((True, "query: "), (False, "passage: ")):
            vectors = prompted.encode(["a cat"], query=query)
            assert vectors == pytest.approx(bare.encode([prompt + "a cat"], query=query), abs=1e-5)
            assert not np.allclose(vectors, bare.encode(["a cat"], query=query), atol=1e-3)


def test_a_prompt_can_turn_the_order_of_a_small_pool(minilm: Path) -> None:
    pool = ListCorpus(["the history of jazz music", "how to bake bread", "football results"])

    def order(prompt: str | None) -> list[int]:
        settings = Settings(
            retriever="dense",
            model=str(minilm),
            backend="sentence-transformers",
            device="cpu",
            query_prompt=prompt,
        )
        task = Task(queries={"q": "goals"}, corpus=pool, texts=lambda ids: {})
        return [name for name, _ in retriever(settings, task).rank(Path())[0]]

    assert order(None)[0] == 2
    assert order("a recipe for bread with flour and yeast in the oven: ")[0] == 1


def test_unknown_tokens_are_counted_and_warned_of(minilm: Path, caplog: pytest.LogCaptureFixture) -> None:
    from qilin_tasks.metrics.bertscore import BertScorer
    from qilin_tasks.retrieval.encoders import load_encoder, warn_of_unknown_tokens

    encoder = load_encoder(str(minilm), backend="mean-pooling", batch_size=4, max_length=64, device="cpu")
    assert encoder.unknown_token_rate(["a cat sits"]) == 0
    assert encoder.unknown_token_rate(["饕餮"]) == 1
    warn_of_unknown_tokens(encoder, "minilm", ["饕餮"], what="queries")
    assert "does not know 100 % of the tokens of the queries" in caplog.text
    caplog.clear()
    scores = BertScorer(model=str(minilm), layer=4, device="cpu").score(["饕餮", "a cat"], ["餮饕", "a dog"])
    assert scores.f1[0] == 1.0
    assert scores.unknown == [1.0, 0.0]
    assert "does not know 50 % of the tokens" in caplog.text


def test_training_refuses_scores_that_are_no_numbers(tmp_path: Path) -> None:
    runs = [tmp_path / "a.trec", tmp_path / "b.trec"]
    for path in runs:
        path.write_text("q Q0 a 1 2.0 x\nq Q0 b 2 nan x\n")
    qrels = tmp_path / "q.txt"
    qrels.write_text("q 0 a 1\n")
    with pytest.raises(DataError, match="line 2: score nan"):
        mrrank.train(runs, qrels, kind="mrrank", depth=10, seed=0, out=tmp_path / "r.npz")
