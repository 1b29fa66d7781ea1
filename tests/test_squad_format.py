"""SQuAD-format readers: what is read, and the error that each bad record gets."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from qilin_tasks.errors import DataError
from qilin_tasks.sources.squad import Answer, paragraphs_of_json, paragraphs_of_rows, read_squad

GOOD: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {
                    "context": "Ann sings. Bob reads.",
                    "qas": [
                        {"id": "q1", "question": "Who sings?", "answers": [{"text": "Ann", "answer_start": 0}]},
                        {"id": "q2", "question": "Who reads?", "answers": [{"text": "Bob", "answer_start": 11}]},
                    ],
                }
            ],
        }
    ],
}
ROW: dict[str, Any] = {
    "id": "q1",
    "title": "T",
    "context": "Ann sings.",
    "question": "Who sings?",
    "answers": {"text": ["Ann"], "answer_start": [0]},
}


def changed(path: list[Any], value: Any) -> Any:
    content = copy.deepcopy(GOOD)
    at: Any = content
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return content


QAS = ["data", 0, "paragraphs", 0, "qas"]
BAD = [
    (["data"], KeyError, r"the file has no 'data'.*is this SQuAD format"),
    (["data"], {}, r"the file has a 'data' of type dict; it must be list"),
    (["data", 0], "x", r"data\[0\] must be an object with 'paragraphs', not str"),
    (["data", 0, "paragraphs", 0, "context"], KeyError, r"data\[0\]\.paragraphs\[0\] has no 'context'"),
    (
        ["data", 0, "paragraphs", 0, "context"],
        " \n ",
        r"data\[0\]\.paragraphs\[0\] has a paragraph without any sentence",
    ),
    ([*QAS, 1, "id"], "q1", r"data\[0\]\.paragraphs\[0\]\.qas\[1\] repeats the question id 'q1' of data\[0\]"),
    ([*QAS, 1, "question"], "  ", r"qas\[1\] \(id 'q2'\) has an empty question"),
    ([*QAS, 0, "question"], None, r"qas\[0\] \(id 'q1'\) has a 'question' of type NoneType"),
    ([*QAS, 0, "answers", 0, "answer_start"], "0", r"answers\[0\] has a 'answer_start' of type str; it must be int"),
    ([*QAS, 0, "answers", 0, "answer_start"], True, r"'answer_start' of type bool"),
    ([*QAS], [], r"the set holds no question"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD)
def test_bad_records_are_named(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"^set: .*{message}|^set: {message}"):
        paragraphs_of_json(changed(path, value), where="set")


def test_good_content() -> None:
    (paragraph,) = paragraphs_of_json(GOOD, where="set")
    assert paragraph.title == "T"
    assert [question.answers for question in paragraph.questions] == [(Answer("Ann", 0),), (Answer("Bob", 11),)]


def test_rows_with_one_context_are_one_paragraph() -> None:
    rows = [ROW, {**ROW, "id": "q2", "context": "Other."}, {**ROW, "id": "q3"}]
    first, second = paragraphs_of_rows(rows, where="rows")
    assert [question.id for question in first.questions] == ["q1", "q3"]
    assert second.text == "Other."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "q0"}, r"row 1 repeats the question id 'q0' of row 0"),
        ({"question": ""}, r"row 1 \(id 'q1'\) has an empty question"),
        ({"context": ""}, r"row 1 \(id 'q1'\) has a paragraph without any sentence"),
        ({"answers": []}, r"row 1 \(id 'q1'\) has a 'answers' of type list"),
        ({"answers": {"text": ["a"], "answer_start": []}}, r"row 1 \(id 'q1'\)\.answers has 1 texts and 0 values"),
    ],
)
def test_bad_rows_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        paragraphs_of_rows([{**ROW, "id": "q0"}, {**ROW, **change}], where="rows")


def test_files_plain_and_gzipped(tmp_path: Path) -> None:
    text = json.dumps(GOOD)
    (tmp_path / "a.json").write_text("\ufeff" + text, encoding="utf-8")
    with gzip.open(tmp_path / "a.json.gz", "wt") as file:
        file.write(text)
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as file:
        file.write(json.dumps(ROW) + "\n\n")
    assert read_squad(tmp_path / "a.json") == read_squad(tmp_path / "a.json.gz")
    assert read_squad(tmp_path / "rows.jsonl.gz")[0].questions[0].id == "q1"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not readable as JSON"),
        ("a.json", "[1]", "must be an object with 'data', not list"),
        ("a.jsonl", json.dumps(ROW) + "\n{", "line 2: not readable as JSON lines"),
        ("a.jsonl", "[]\n", "line 1: must hold a JSON object, not list"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_squad(path)
    assert str(path) in str(caught.value)


def test_a_cut_gzip_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(("\n".join(json.dumps({**ROW, "id": str(n)}) for n in range(2000))).encode())
    (tmp_path / "rows.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"rows\.jsonl\.gz, line \d+: not readable"):
        read_squad(tmp_path / "rows.jsonl.gz")
