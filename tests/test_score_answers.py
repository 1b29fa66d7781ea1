"""`qilin-tasks score --task … --answers …`: ready-made answers checked, scored and written as a model's are."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runs import write_run

from qilin_tasks.commands import score
from qilin_tasks.errors import DataError, QilinTasksError, SettingError
from qilin_tasks.files import together
from qilin_tasks.judge.answers import stored_answers
from qilin_tasks.own_data.system_answers import check_complete, missing_keys, read_answers
from qilin_tasks.report.collect import boards_of
from qilin_tasks.results.reader import find_results, iter_samples
from qilin_tasks.results.rescore import rescore

TASK = "qilin_dqa_oracle"
DOCUMENTS: list[dict[str, Any]] = [{"doc_key": key, "query": f"q{key}", "reference": "r"} for key in (0, 3, 12)]
OWN = [{**doc, "question_id": f"id{doc['doc_key']}"} for doc in DOCUMENTS]


def run_score(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    score.add_parser(parser.add_subparsers())
    args = parser.parse_args(["score", *arguments])
    return int(args.run(args))


def scored(folder: Path, capsys: pytest.CaptureFixture[str], *more: str, out: str = "runs") -> dict[str, Any]:
    arguments = ["--task", TASK, "--answers", f"{folder}/mine.jsonl", "--out", f"{folder}/{out}", "--json", *more]
    assert run_score(*arguments, "--metadata", "bertscore=off") == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return summary


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_from_questions_to_rows_that_everything_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    wanted = ["--task", TASK, "--questions", f"{tmp_path}/questions.jsonl", "--metadata", "bertscore=off"]
    assert run_score(*wanted) == 0
    questions = lines(tmp_path / "questions.jsonl")
    assert len(questions) == 30
    assert not [key for question in questions for key in question if key not in ("doc_key", "query", "notes")]
    # A note's text as the answer, from the last question on; the first three are not answered.
    answers = [{**asked, "answer": (asked["notes"] or [{}])[0].get("content", "没有")} for asked in questions[:2:-1]]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(answer) for answer in answers), encoding="utf-8")
    with pytest.raises(DataError, match=r"no answer to 3 of 30 documents of qilin_dqa_oracle \(doc_key 0, 1, 2\)"):
        scored(tmp_path, capsys)
    assert not (tmp_path / "runs").exists()

    summary = scored(tmp_path, capsys, "--allow-missing", "--name", "my rag")
    assert (summary["documents"], summary["missing"], summary["empty"]) == (30, 3, 3)
    assert summary["metrics"]["empty_rate"] == 0.1
    (result,) = find_results([tmp_path / "runs"])
    assert (result.model, result.task, result.n, result.is_baseline) == ("my rag", TASK, 30, False)
    samples = list(iter_samples(result))
    by_key = {sample.key: sample for sample in samples}
    assert by_key[7].filtered == [questions[7]["notes"][0]["content"]]
    assert by_key[1].filtered == [""]
    assert by_key[1].scores["rouge_l"] == 0
    mean = sum(sample.scores["rouge_l"] for sample in samples) / 30
    assert result.values["rouge_l"] == pytest.approx(mean, abs=1e-12)
    assert 0.1 < mean < 0.9
    # Nobody asked it with the task's prompt, and the signature doesn't say so.
    assert not {"prompt", "gen", "chat", "shots"} & result.parts.keys()
    assert result.parts["ctx"] == "oracle"
    assert not list((tmp_path / "runs").rglob(".unfinished-*"))

    with together() as files:
        again = rescore(result, {}, into=files)
    assert all(before == pytest.approx(after, abs=1e-12) for before, after in again.changes.values())
    (newest,) = find_results([tmp_path / "runs"])
    assert (newest.path, newest.parts["given"]) == (again.path, result.parts["given"])
    judged = stored_answers([tmp_path / "runs"], tasks=(), models=(), most_chars=10_000)
    assert {answer.key: answer.text for answer in judged}[7] == questions[7]["notes"][0]["content"]
    with pytest.raises(SettingError, match="is there already: another --name or --out, or --overwrite"):
        scored(tmp_path, capsys, "--allow-missing", "--name", "my rag")


def test_answers_stand_beside_models_whatever_these_were_asked_with(tmp_path: Path) -> None:
    signatures = {
        "model": "dqa|ctx:na|prompt:a|gen:b|shots:0|chat:1|data:d|n:3",
        "other": "dqa|ctx:na|prompt:a|gen:x|shots:0|chat:1|data:d|n:3",
        "system": "dqa|ctx:na|data:d|n:3|given:1",
        "second": "dqa|ctx:na|data:d|n:3|given:2",
        "apart": "dqa|ctx:na|data:e|n:3|given:3",
    }
    for name, signature in signatures.items():
        write_run(
            tmp_path / name, model=name, task="qilin_dqa_na", docs=DOCUMENTS, responses=["x"] * 3,
            scores=[{"rouge_l": 0.5}] * 3, signature=signature, metadata={"context": "na"},
        )  # fmt: skip
    (board,) = boards_of(find_results([tmp_path]))
    problems = {row.result.model: row.problem for row in board.columns[0].rows}
    assert [name for name, problem in problems.items() if not problem] == ["model", "second", "system"]
    assert "gen x instead of b" in problems["other"]
    assert "data e instead of d" in problems["apart"]


TEXTS = st.dictionaries(st.sampled_from([0, 3, 12]), st.text(st.characters(exclude_categories=("Cs",))), min_size=1)


@settings(max_examples=40)
@given(answers=TEXTS, own=st.booleans(), suffix=st.sampled_from(["jsonl", "csv", "parquet"]))
def test_every_form_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, answers: dict[int, str], own: bool, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("answers") / f"mine.{suffix}"
    rows = [
        {"question_id": f"id{key}", "answer": text} if own else {"doc_key": key, "answer": text}
        for key, text in answers.items()
    ]
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif suffix == "csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    read = read_answers(path, OWN if own else DOCUMENTS, task="t")
    assert read == answers
    assert missing_keys(DOCUMENTS, read) == [key for key in (0, 3, 12) if key not in answers]


@pytest.mark.parametrize("header", ["", "doc_key\tanswer\n"])
def test_a_table_with_tabs(tmp_path: Path, header: str) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(f'{header}3\t"八分钟"，他说\n0\t\n', encoding="utf-8")
    assert read_answers(path, DOCUMENTS, task="t") == {3: '"八分钟"，他说', 0: ""}
    path.write_text(f"{header}3\ta\tb\n0\n", encoding="utf-8")
    first = 1 + bool(header)
    with pytest.raises(DataError, match=rf"line {first}: 3 columns, 2 expected(?s:.*)line {first + 1}: 1 columns"):
        read_answers(path, DOCUMENTS, task="t")


FAULTS = [
    ('{"doc_key": 99, "answer": "x"}', r"line 2: doc_key 99: no document of t \(it has 3, the first is 0\)"),
    ('{"doc_key": true, "answer": "x"}', "line 2: doc_key True: no document of t"),
    ('{"doc_key": 0, "answer": "x"}', "line 2: document 0 is answered in mine.jsonl, line 1 too"),
    ('{"doc_key": 3}', "line 2: no 'answer': its columns are 'doc_key'"),
    ('{"doc_key": 3, "answer": null}', 'line 2: answer None: a text is expected; "" where'),
    ('{"doc_key": 3, "answer": ["x"]}', r"line 2: answer \['x'\]: a text is expected"),
    ('{"key": 3, "answer": "x"}', "line 2: no doc_key or question_id: its columns are 'key', 'answer'"),
    ('{"question_id": "a", "answer": "x"}', "line 2: question_id: documents of t have none: name them by doc_key"),
    ('{"doc_key": 3, "answer', "line 2: not JSON"),
    ("[3]", "line 2: one JSON object a line"),
]


@pytest.mark.parametrize(("line", "said"), FAULTS)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "mine.jsonl").write_text(f'{{"doc_key": 0, "answer": "x"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(DataError, match=f"1 faults(?s:.*){said}"):
        read_answers(tmp_path / "mine.jsonl", DOCUMENTS, task="t")


@pytest.mark.parametrize(("name", "said"), [("mine.txt", "suffix '.txt': choose from"), ("none.csv", "no such file")])
def test_a_file_that_is_none(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "mine.txt").write_text("0 x\n")
    with pytest.raises(QilinTasksError, match=said):
        read_answers(tmp_path / name, DOCUMENTS, task="t")


def test_many_missing_answers_are_shown_as_a_few(tmp_path: Path) -> None:
    check_complete([], documents=30, path=tmp_path, task="t")
    with pytest.raises(DataError, match=r"no answer to 9 of 30 documents of t \(doc_key 0, 1, 2, 3, 4, …\)"):
        check_complete(range(9), documents=30, path=tmp_path, task="t")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--answers", "a.jsonl"], "--answers: --task is missing"),
        (["--task", TASK], "give --answers FILE to score them, or --questions FILE"),
        (["--task", TASK, "--answers", "a.jsonl", "--questions", "q.jsonl"], "give --answers FILE"),
        (["--task", TASK, "--answers", "a.jsonl", "--run", "r.csv"], "--task is of answers and --run of rankings"),
        (["--config", "dqa"], "give --config and --run for a ranking, or --task and --answers"),
        (["--task", TASK, "--answers", "a.jsonl", "--limit", "0"], "--limit 0: must be above 0"),
        (["--task", "qilin_dqa", "--answers", "a.jsonl"], "holds several tasks; choose one: qilin_dqa_na"),
        (["--task", "qilin_dqa_bm26", "--answers", "a.jsonl"], "not a task, group or tag"),
        (["--task", "qilin_search_pointwise", "--answers", "a.jsonl"], "scores log-likelihoods, not answers"),
        (["--task", TASK, "--questions", "q.csv", "--metadata", "bertscore=off"], "JSON lines are written"),
        (["--task", TASK, "--answers", "a.jsonl", "--metadata", "top=5"], "none of the tasks has the setting 'top'"),
    ],
)
def test_flags_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], said: str) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=said):
        run_score(*flags)
    assert not list(tmp_path.iterdir())
