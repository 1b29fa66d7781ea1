"""`qilin-tasks retrieve`, `mrrank` and `train-biencoder` from the command line's point of view."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType

import pytest

from qilin_tasks.commands import mrrank, retrieve, train_biencoder
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.retrieval.pipeline import Settings
from qilin_tasks.sources.runs import read_run

DOCUMENTS = {"a": "The cat's kittens sleep.", "b": "Stock markets fell", "c": "A sleeping dog", "d": ""}
TOPICS = {"q1": "cats sleeping", "q2": "market", "q3": "the", "q4": "dogs"}


@pytest.fixture
def collection(tmp_path: Path) -> tuple[Path, Path]:
    corpus, topics = tmp_path / "docs.jsonl", tmp_path / "topics.tsv"
    lines = [json.dumps({"id": name, "contents": text, "extra": 1}) for name, text in DOCUMENTS.items()]
    corpus.write_text("\n".join(lines), "utf-8")
    topics.write_text("".join(f"{name}\t{text}\n" for name, text in TOPICS.items()), "utf-8")
    return corpus, topics


def command(module: ModuleType, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    args = parser.parse_args(arguments)
    return int(args.run(args))


def bm25(collection: tuple[Path, Path], out: Path, *extra: str) -> Path:
    corpus, topics = collection
    given = ["--corpus", str(corpus), "--topics", str(topics), "--language", "en", "--retriever", "bm25", "--quiet"]
    assert command(retrieve, "retrieve", *given, "--out", str(out), *extra) == 0
    return out


def rankings(path: Path) -> dict[str, list[str]]:
    run = read_run(path)
    found: dict[str, list[str]] = {}
    for query, candidate in zip(run.query_ids.tolist(), run.candidate_ids.tolist(), strict=True):
        found.setdefault(query, []).append(candidate)
    return found


def test_a_collection_is_ranked_into_a_trec_run(collection: tuple[Path, Path], tmp_path: Path) -> None:
    run = bm25(collection, tmp_path / "run.trec")
    assert rankings(run) == {"q1": ["a", "c"], "q2": ["b"], "q4": ["c"]}
    assert run.read_text().splitlines()[0].split()[:4] == ["q1", "Q0", "a", "1"]
    with pytest.raises(DataError, match="is there already"):
        bm25(collection, run)
    bm25(collection, run, "--overwrite", "--top-k", "1")
    assert rankings(run)["q1"] == ["a"]


def test_learned_fusion_end_to_end(collection: tuple[Path, Path], tmp_path: Path) -> None:
    corpus, topics = collection
    runs = [bm25(collection, tmp_path / "a.trec"), bm25(collection, tmp_path / "b.trec", "--b", "1")]
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q1 0 a 1\nq1 0 c 0\nq2 0 b 1\nq9 0 b 1\n")
    ranker = tmp_path / "ranker.npz"
    paths = [str(path) for path in runs]
    assert command(mrrank, "mrrank", "--runs", *paths, "--qrels", str(qrels), "--out", str(ranker)) == 0
    learned = Settings(retriever="mrrank", ranker=ranker)
    with pytest.raises(DataError, match="was trained on the run by 'bm25' that it is to rank now"):
        retrieve.retrieve(corpus, topics, settings=learned, out=tmp_path / "m.trec", runs=runs)
    others = tmp_path / "others.tsv"
    others.write_text("".join(f"n{line}\n" for line in topics.read_text().splitlines()))
    new = [bm25((corpus, others), tmp_path / "c.trec"), bm25((corpus, others), tmp_path / "d.trec", "--b", "1")]
    out = retrieve.retrieve(corpus, others, settings=learned, out=tmp_path / "m.trec", runs=new)
    assert rankings(out)["nq1"] == ["a", "c"]
    with pytest.raises(DataError, match="none of its 1 queries is in all runs"):
        other = tmp_path / "other.txt"
        other.write_text("x 0 a 1\n")
        mrrank.train(runs, other, kind="mrrank", depth=10, seed=0, out=ranker)
    with pytest.raises(DataError, match="1 runs: fusion needs two"):
        mrrank.train(runs[:1], qrels, kind="mrrank", depth=10, seed=0, out=ranker)


def test_documents_that_a_run_invents_are_named(collection: tuple[Path, Path]) -> None:
    from qilin_tasks.retrieval.corpus import JsonLinesCorpus

    corpus = JsonLinesCorpus(collection[0])
    assert retrieve.read_texts(corpus, ["a", "d"]) == {"a": DOCUMENTS["a"], "d": ""}
    with pytest.raises(DataError, match="1 documents that the collection lacks, for example 'z'"):
        retrieve.read_texts(corpus, ["a", "z"])


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no topic"), ("q1 no tab", "line 1: 'q1 no tab'"), ("q1\tx\nq1\ty", "line 2: topic 'q1' is there twice")],
)
def test_topics_that_are_none_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        retrieve.read_topics(path)


def test_a_suffix_that_is_no_trec_run_is_refused(collection: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"ends with \.trec"):
        retrieve.retrieve(*collection, settings=Settings(retriever="bm25"), out=tmp_path / "run.parquet")


@pytest.mark.slow
def test_a_biencoder_trains_on_the_sample_and_is_a_model_again(minilm: Path, tmp_path: Path) -> None:
    from qilin_tasks.retrieval.encoders import load_encoder

    out = tmp_path / "biencoder"
    given = ["--data", "sample", "--model", str(minilm), "--out", str(out), "--steps", "2", "--batch-size", "4"]
    assert command(train_biencoder, "train-biencoder", *given, "--max-length", "32", "--limit", "20") == 0
    encoder = load_encoder(str(out), backend="sentence-transformers", batch_size=4, max_length=None)
    assert encoder.encode(["cat"]).shape == (1, 384)
    assert '"unit": false' in encoder.signature
    with pytest.raises(SettingError, match="is there already"):
        command(train_biencoder, "train-biencoder", *given)
