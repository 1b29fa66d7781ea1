"""The pipeline's retrievers as first stage, matcher and context of ReQA; sets of one's own."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.evaluation import evaluate, metric

from qilin_tasks import tasks_folder
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.reqa.pools import build_pool, load_pool
from qilin_tasks.reqa.retrieval import first_stage, matches, retriever_recipe
from qilin_tasks.reqa.settings import CandidateSettings
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.mrrank import train_ranknet
from qilin_tasks.retrieval.ranker_file import save_ranker
from qilin_tasks.sources.squad import Answer, Paragraph, Question

OFF = {"bertscore": "off", "meteor": "off"}


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")


def settings(**chosen: Any) -> CandidateSettings:
    text = (tasks_folder() / "reqa" / "_reqa_listwise_yaml").read_text(encoding="utf-8")
    content = yaml.safe_load("\n".join(line for line in text.splitlines() if "!function" not in line))
    return CandidateSettings.from_metadata({**content["dataset_kwargs"], "set": "xquad_en", **chosen})


def test_bm25_through_the_pipeline_is_bm25() -> None:
    chosen = settings()
    pool = chosen.pool()
    index = BM25(pool.candidates, language="en")
    queries = {question.key: question.text for question in pool.questions}
    for found, text in zip(matches("bm25", pool, chosen, queries), queries.values(), strict=True):
        assert np.array_equal(np.where(found == -np.inf, 0, found), index.scores(text))
    for ranked, text in zip(first_stage("bm25", pool, chosen, k=5), queries.values(), strict=True):
        known = [position for position, _ in index.search(text, k=5)]
        assert list(ranked[: len(known)]) == known


def write_run(path: Path, rankings: dict[str, list[int]]) -> str:
    lines = [
        f"{key} Q0 {position} {rank} {-rank} mine\n"
        for key, ranking in rankings.items()
        for rank, position in enumerate(ranking, start=1)
    ]
    path.write_text("".join(lines))
    return str(path)


def test_a_run_file_is_the_first_stage(tmp_path: Path) -> None:
    pool = load_pool("xquad_en")
    wanted = {question.key: [7, 2, 5] for question in pool.questions}
    chosen = settings(first_stage="run", run_file=write_run(tmp_path / "run.trec", wanted))
    assert set(first_stage("run", pool, chosen, k=3)) == {(7, 2, 5)}
    assert retriever_recipe("run", chosen).startswith("run(")
    with pytest.raises(DataError, match="names the document '99999', which the pool of xquad_en lacks"):
        bad = write_run(tmp_path / "bad.trec", {pool.questions[0].key: [99999]})
        first_stage("run", pool, settings(run_file=bad), k=3)
    with pytest.raises(DataError, match="none of its 1 queries is a question of xquad_en"):
        first_stage("run", pool, settings(run_file=write_run(tmp_path / "other.trec", {"x": [1]})), k=3)
    with pytest.raises(SettingError, match="give the run as run_file"):
        first_stage("run", pool, settings(), k=3)


def test_fusions_of_run_files(tmp_path: Path) -> None:
    pool = load_pool("xquad_en")
    keys = [question.key for question in pool.questions]
    runs = [
        write_run(tmp_path / "a.trec", {key: [1, 2, 3] for key in keys}),
        write_run(tmp_path / "b.trec", {key: [3, 2, 4] for key in keys}),
    ]
    assert set(first_stage("rrf", pool, settings(run_file=runs), k=2)) == {(3, 2)}
    weighted = settings(run_file=runs, fusion_weights=[1, 0])
    assert set(first_stage("weighted", pool, weighted, k=2)) == {(1, 2)}
    assert retriever_recipe("weighted", weighted).startswith("weighted(1.0,0.0;")
    with pytest.raises(SettingError, match="fusion_weights 'half': give numbers"):
        settings(fusion_weights="half")


def test_a_learned_fusion_is_a_first_stage_a_matcher_and_a_context(minilm: Path, tmp_path: Path) -> None:
    ranker = tmp_path / "ranker.npz"
    rankings = [[[("a", 3.0), ("b", 2.0)], [("b", 9.0), ("a", 1.0)]]] * 4
    model = train_ranknet(rankings, [{"a"}] * 4, depth=10, seed=0)
    runs = [{"system": "bm25", "identity": "1"}, {"system": "dense", "identity": "2"}]
    save_ranker(ranker, model, recipe={"runs": runs})
    metadata = {
        **OFF,
        "dense_model": str(minilm),
        "dense_device": "cpu",
        "first_stage": "mrrank",
        "matcher": "mrrank",
        "context": "mrrank",
        "ranker_file": str(ranker),
    }
    names = ["reqa_xquad_en", "reqa_xquad_en_generate", "reqa_xquad_en_reader_dense"]
    results = evaluate(names, QilinBaseline(strategy="oracle"), metadata=metadata)
    assert metric(results, names[0], "mrr") > 0.8
    assert metric(results, names[1], "mrr") == 1.0
    for name, part in zip(names, ("stage1:mrrank(", "match:mrrank(", "ctx:mrrank("), strict=True):
        signature = results["configs"][name]["metadata"]["signature"]
        assert part in signature and "bm25(k1=0.9,b=0.4)+dense:" in signature
    with pytest.raises(SettingError, match="needs a trained model"):
        evaluate(names[:1], QilinBaseline(strategy="oracle"), metadata={**metadata, "ranker_file": None})


def test_prompts_are_in_the_signature(minilm: Path) -> None:
    bare = settings(dense_model=str(minilm))
    prompted = settings(dense_model=str(minilm), dense_query_prompt="query: ", dense_document_prompt="passage: ")
    assert retriever_recipe("dense", bare) == f"dense:{minilm}"
    assert retriever_recipe("dense", prompted) not in ("", retriever_recipe("dense", bare))


def squad(path: Path, text: str, answer: str) -> Path:
    qas = [{"id": "1", "question": "Wann?", "answers": [{"text": answer, "answer_start": text.index(answer)}]}]
    qas.append({"id": "2", "question": "Nie?", "is_impossible": True, "answers": [{"text": "x", "answer_start": 900}]})
    path.write_text(json.dumps({"data": [{"title": "T", "paragraphs": [{"context": text, "qas": qas}]}]}), "utf-8")
    return path


GERMAN = "Dr. Müller kam am 3. Oktober 1990 z. B. nach Bonn. Dort blieb er. Was tat er? Er schrieb ein Buch."


def test_a_set_of_ones_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = squad(tmp_path / "de.json", GERMAN, "3. Oktober 1990")
    metadata = {"set": "custom", "path": str(path), "language": "de", "top_k": 3}
    with caplog.at_level(logging.INFO):
        results = evaluate(["reqa_squad"], QilinBaseline(strategy="oracle"), metadata=metadata)
    assert metric(results, "reqa_squad", "mrr") == 1.0
    assert "1 questions, 4 candidates, 4.00 a paragraph, 0 answers cut" in caplog.text
    reader = evaluate(["reqa_squad_reader_bm25"], QilinBaseline(strategy="oracle"), metadata={**metadata, **OFF})
    assert metric(reader, "reqa_squad_reader_bm25", "em") == 1.0


def test_a_folder_in_beir_format_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "", "text": "el gato"}\n{"_id": "d2", "text": "perro"}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "gato"}\n')
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    chosen = settings(set="custom", path=str(tmp_path), language="es")
    assert chosen.pool().ids == ("d1", "d2")
    assert first_stage("bm25", chosen.pool(), chosen, k=1) == ((0,),)
    run = write_run(tmp_path / "r.trec", {})
    Path(run).write_text("q1 Q0 d2 1 9 x\n")
    assert first_stage(
        "run", chosen.pool(), settings(set="custom", path=str(tmp_path), language="es", run_file=run), k=1
    ) == ((1,),)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"set": "custom"}, "set 'custom' needs path"),
        ({"set": "custom", "path": "x", "language": "xx"}, r"language 'xx': choose from ar, bg, bn, .*zh"),
        ({"path": "x"}, "path and language are for 'custom'"),
    ],
)
def test_settings_of_ones_own_set(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        settings(**chosen)


def test_a_script_that_does_not_fit_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = squad(tmp_path / "hi.json", "यह दिल्ली है। वह मुंबई है।", "दिल्ली")
    settings(set="custom", path=str(path), language="en").pool()
    assert "0 % of the letters are of the script of language 'en'" in caplog.text
    assert "languages of the text's script: hi, mr, ne" in caplog.text
    with pytest.raises(DataError, match="no such file or folder"):
        settings(set="custom", path=str(tmp_path / "none"), language="en").pool()


def test_documents_are_all_paragraphs_with_the_gold_sentence() -> None:
    """The official document rank: the best of all paragraphs that hold the gold sentence's text."""
    asked = Question("q", "Who reads?", (Answer("Bob", 0),))
    paragraphs = [
        Paragraph("A", "Ann sings. Bob reads.", (Question("p", "Who sings?", (Answer("Ann", 0),)),)),
        Paragraph("B", "Bob reads. Cy naps.", (asked,)),
    ]
    question = build_pool(paragraphs, name="set", language="en", strict=True).questions[1]
    assert (question.documents, question.paragraph, question.sentences, question.gold) == ((0, 1), 1, (2,), (1, 2))


def test_what_was_left_out_is_in_the_pools_summary() -> None:
    lost = Question("l", "Lost?", (Answer("Ann", 500),))
    cut = Question("c", "Cut?", (Answer("sings. Bob", 4),))
    built = build_pool([Paragraph("A", "Ann sings. Bob reads.", (lost, cut))], name="set", language="en", strict=False)
    assert built.summary == (
        "1 questions, 2 candidates, 2.00 a paragraph, 1 answers cut by a sentence's end; left out 1 x answer offset "
        "outside its paragraph, left out 1 x question without a usable answer"
    )
