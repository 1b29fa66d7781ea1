"""BEIR-format sets, and the Natural Questions converter over a local stand-in in the hub's schema."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import datasets
import pytest
from support.nq_rows import example

from qilin_tasks.errors import DataError
from qilin_tasks.reqa.pools import build_pool
from qilin_tasks.sources import nq
from qilin_tasks.sources.beir import assemble, read_beir
from qilin_tasks.sources.nq import convert_nq, example_to_article
from qilin_tasks.sources.reqa import cache_folder
from qilin_tasks.sources.squad import read_squad


def beir_folder(folder: Path, **changes: str) -> Path:
    files = {
        "corpus.jsonl": '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "title": "", "text": "two"}\n',
        "queries.jsonl": '{"_id": "q1", "text": "a?"}\n{"_id": "q2", "text": "never judged"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\n",
        **changes,
    }
    (folder / "qrels").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_beir_folder(tmp_path: Path) -> None:
    found = read_beir(beir_folder(tmp_path / "set"), split="test")
    assert found.documents == {"d1": "T one", "d2": "two"}
    assert found.queries == {"q1": "a?"}
    assert found.qrels == {"q1": ("d2",)}


def test_gzipped_files_and_trec_qrels(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "set", **{"qrels/test.tsv": "q1\t0\td1\t2\nq1\t0\td2\t0\n"})
    text = (folder / "corpus.jsonl").read_bytes()
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(text))
    assert read_beir(folder, split="test").qrels == {"q1": ("d1",)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td9\t1\n", "name document 'd9', which the corpus lacks"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq9\td1\t1\n", "judge query 'q9', which the queries lack"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t0\n", "no judgement with a score above 0"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1 d1 1\n", "judgement 0 has 1 columns"),
        ("corpus.jsonl", '{"_id": "d2", "text": "x"}\n{"_id": "d2", "text": "y"}\n', "record 1 repeats the id 'd2'"),
        ("corpus.jsonl", '{"_id": "d2"}\n', "corpus, record 0 has no 'text'"),
        ("queries.jsonl", '{"_id": "q1", "text": " "}\n', r"queries, record 0 \(_id 'q1'\): an empty query"),
        ("queries.jsonl", "{", "line 1: not readable as JSON lines"),
    ],
)
def test_bad_beir_records_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_beir(beir_folder(tmp_path / "set", **{name: text}), split="test")


def test_a_missing_file_says_what_the_layout_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"qrels/dev\.tsv \(or .*\.gz\) is missing; a set in BEIR format is"):
        read_beir(beir_folder(tmp_path / "set"), split="dev")


def test_a_limit_keeps_the_relevant_documents_and_a_seeded_sample() -> None:
    corpus = [{"_id": f"d{n}", "text": f"text {n}"} for n in range(500)]
    queries = [{"_id": "q", "text": "?"}]
    qrels = [{"query-id": "q", "corpus-id": f"d{n}", "score": 1} for n in (7, 499)]

    def kept(seed: int) -> list[str]:
        return list(assemble(corpus, queries, qrels, where="set", limit=20, seed=seed).documents)

    assert len(kept(0)) == 22
    assert {"d7", "d499"} <= set(kept(0))
    assert kept(0) == kept(0) == sorted(kept(0), key=lambda key: int(key[1:]))
    assert kept(0) != kept(1)


# Natural Questions.


def test_one_example() -> None:
    article = example_to_article(example("7"))
    assert article == {
        "title": "Page 7",
        "paragraphs": [
            {
                "context": "Ann sings. Bob reads.",
                "qas": [{"id": "7", "question": "who reads 7", "answers": [{"text": "Bob", "answer_start": 11}]}],
            }
        ],
    }


def test_what_is_not_used() -> None:
    assert example_to_article(example("1", html="<Table>")) is None
    assert example_to_article(example("1", answers=2)) is None
    assert example_to_article(example("1", answers=0)) is None
    no_long = example("1")
    no_long["annotations"]["long_answer"] = [{"start_token": -1, "end_token": -1}]
    assert example_to_article(no_long) is None


def test_only_the_first_annotation_counts() -> None:
    two = example("1", annotations=2)
    two["annotations"]["short_answers"][1] = {"start_token": [4], "end_token": [5], "text": ["Ann"]}
    article = example_to_article(two)
    assert article is not None
    assert [answer["text"] for answer in article["paragraphs"][0]["qas"][0]["answers"]] == ["Bob"]
    second_only = example("1", annotations=2)
    second_only["annotations"]["long_answer"][0] = {"start_token": -1, "end_token": -1}
    assert example_to_article(second_only) is None


def test_tokens_that_touch_in_the_page_are_joined_where_their_tags_are_no_tokens() -> None:
    html = "<P>H<sub>2</sub>O is wet</P>"
    words = ["<P>", "H", "2", "O", "is", "wet", "</P>"]
    starts = [0, 3, 9, 16, 18, 21, 24]
    row = {
        "id": "1",
        "document": {
            "title": "Water",
            "html": html,
            "tokens": {
                "token": words,
                "is_html": [word.startswith("<") for word in words],
                "start_byte": starts,
                "end_byte": [start + len(word) for start, word in zip(starts, words, strict=True)],
            },
        },
        "question": {"text": "what is wet"},
        "annotations": {
            "long_answer": [{"start_token": 0, "end_token": 7}],
            "short_answers": [{"start_token": [1], "end_token": [4], "text": ["H2O"]}],
        },
    }
    article = example_to_article(row)
    assert article is not None
    paragraph = article["paragraphs"][0]
    assert paragraph["context"] == "H2O is wet"
    assert paragraph["qas"][0]["answers"] == [{"text": "H2O", "answer_start": 0}]


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Thirty examples in three shards, every third one unusable."""
    for shard in range(3):
        rows = [example(str(n), html="<P>" if n % 3 else "<Ul>") for n in range(shard * 10, shard * 10 + 10)]
        (tmp_path / f"part-{shard}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return tmp_path


def stream(folder: Path) -> Any:
    files = sorted(str(path) for path in folder.glob("part-*.jsonl"))
    return datasets.load_dataset("json", data_files=files, split="train", streaming=True)


def test_convert_streams_into_one_file_that_the_reader_reads(stand_in: Path) -> None:
    path = convert_nq(stand_in / "out" / "nq.json", source=stream(stand_in), progress=False)
    pool = build_pool(read_squad(path), name="nq", language="en", strict=True)
    assert len(pool.questions) == 20
    assert pool.candidates[:2] == ("Ann sings.", "Bob reads.")
    assert [entry.name for entry in path.parent.iterdir()] == ["nq.json"]


def test_a_second_call_reads_nothing(stand_in: Path) -> None:
    path = convert_nq(stand_in / "nq.json", source=stream(stand_in), progress=False)
    assert convert_nq(path, source=None, progress=False) == path


class Interrupted:
    """The real stream, broken off after some rows."""

    def __init__(self, inner: Any, rows: int) -> None:
        self.inner, self.rows = inner, rows

    def __iter__(self) -> Any:
        for number, row in enumerate(self.inner):
            if number == self.rows:
                raise ConnectionError("the line went dead")
            yield row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Counted(Interrupted):
    def __init__(self, inner: Any) -> None:
        super().__init__(inner, -1)
        self.seen = 0

    def __iter__(self) -> Any:
        for row in self.inner:
            self.seen += 1
            yield row


@pytest.mark.parametrize("torn", [False, True])
def test_an_interrupted_run_goes_on_where_it_stopped(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    whole = convert_nq(stand_in / "whole.json", source=stream(stand_in), progress=False).read_text()
    monkeypatch.setattr(nq, "CHECKPOINT_ROWS", 4)
    target = stand_in / "nq.json"
    with pytest.raises(ConnectionError):
        convert_nq(target, source=Interrupted(stream(stand_in), 14), progress=False)
    assert not target.exists()
    part = target.with_name("nq.json.part")
    if torn:  # the last line was cut by a full disk
        part.write_bytes(part.read_bytes()[:-20])
    rest = Counted(stream(stand_in))
    convert_nq(target, source=rest, progress=False)
    assert rest.seen == 30 - (8 if torn else 12)
    assert target.read_text() == whole
    assert not part.exists()


def test_nothing_usable_is_an_error(stand_in: Path) -> None:
    for shard in range(3):
        (stand_in / f"part-{shard}.jsonl").write_text(json.dumps(example(str(shard), html="<Ul>")))
    with pytest.raises(DataError, match="none of 3 examples has one short answer"):
        convert_nq(stand_in / "nq.json", source=stream(stand_in), progress=False)


def test_offline_says_where_a_converted_file_may_lie(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.CRITICAL),
        pytest.raises(DataError, match=r"nq\.dev\.json into the folder that REQA_DATA"),
    ):
        convert_nq(tmp_path / "nq.json", progress=False)


def test_a_converted_set_lies_in_the_cache_folder_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("QILIN_TASKS_CACHE", raising=False)
    assert cache_folder() == tmp_path / "user" / "qilin-tasks" / "reqa"
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path / "ours"))
    assert cache_folder() == tmp_path / "ours" / "reqa"
