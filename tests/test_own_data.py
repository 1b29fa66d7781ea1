"""new-data: a user's questions and notes, checked, written whole, and asked by `custom_dqa_*`."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.evaluation import ScriptedModel, defaults, evaluate, metric

from qilin_tasks import cli
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.families import FAMILIES
from qilin_tasks.own_data.documents import OwnDataSettings, OwnDocument, build_own
from qilin_tasks.own_data.values import NOTE_COLUMNS, QUESTION_COLUMNS

CORPUS = [
    {"id": "boil", "title": "煮饺子", "text": "水开下饺子，煮八分钟。"},
    {"id": "cat", "title": "养猫", "text": "猫多半乳糖不耐受，喝牛奶会腹泻。"},
    {"id": "sun", "text": "油皮适合清爽的防晒霜。"},
]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "a", "question": "饺子煮多久", "answers": ["水开后煮八分钟。", "八分钟"], "cited": ["boil"]},
    {"id": "b", "question": "猫能喝牛奶吗", "answers": ["不建议，容易腹泻。"], "cited": ["cat"]},
    {"id": "c", "question": "防晒霜怎么选", "answers": ["油皮选清爽的。"], "cited": ["sun", "boil"]},
]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as the suffix says; lists are JSON text in CSV."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", newline="", encoding="utf-8-sig") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            for row in rows:
                writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()})
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def new_data(folder: Path, questions: Path, *rest: str) -> int:
    return cli.main(["new-data", str(folder), "--from", str(questions), *rest])


def made(tmp_path: Path, suffix: str = ".jsonl", questions: Sequence[dict[str, Any]] = QUESTIONS) -> Path:
    corpus = write(tmp_path / f"corpus{suffix}", CORPUS)
    assert new_data(tmp_path / "mine", write(tmp_path / f"qa{suffix}", questions), "--notes", str(corpus)) == 0
    return tmp_path / "mine"


def documents(folder: Path, context: str, **changed: Any) -> list[OwnDocument]:
    given = {**defaults("qilin/_custom_dqa_yaml"), "context": context, "path": str(folder), **changed}
    return build_own(OwnDataSettings.from_metadata(given))


def titles(found: Sequence[OwnDocument]) -> list[list[str]]:
    return [[note["title"] or note["content"] for note in document["notes"]] for document in found]


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_every_format_gives_the_same_documents(tmp_path: Path, suffix: str) -> None:
    folder = made(tmp_path, suffix)
    found = documents(folder, "oracle")
    assert [document["question_id"] for document in found] == ["a", "b", "c"]
    assert [document["references"] for document in found] == [row["answers"] for row in QUESTIONS]
    assert titles(found) == [["煮饺子"], ["养猫"], ["油皮适合清爽的防晒霜。", "煮饺子"]]
    assert titles(documents(folder, "na")) == [[], [], []]
    assert [shown[0] for shown in titles(documents(folder, "bm25"))] == ["煮饺子", "养猫", "油皮适合清爽的防晒霜。"]


def test_notes_that_come_with_the_questions(tmp_path: Path) -> None:
    rows = [
        {
            "question": "多久",
            "answer": "八分钟",
            "notes": ["煮八分钟。", {"id": "x", "text": "煮三分钟。"}],
            "cited": [1],
        },
        {"question": "几分", "answer": "三分钟", "notes": [{"text": "煮三分钟。"}], "cited": ["1"]},
    ]
    assert new_data(tmp_path / "mine", write(tmp_path / "qa.jsonl", rows)) == 0
    assert titles(documents(tmp_path / "mine", "contexts")) == [["煮八分钟。", "煮三分钟。"], ["煮三分钟。"]]
    assert titles(documents(tmp_path / "mine", "contexts", top_k=1)) == [["煮八分钟。"], ["煮三分钟。"]]
    assert titles(documents(tmp_path / "mine", "oracle")) == [["煮八分钟。"], ["煮三分钟。"]]
    # One text is one note, whoever brings it.
    assert json.loads((tmp_path / "mine" / "own_data.json").read_text("utf-8"))["notes"] == 2


FAULTS = [
    ('{"question": "q"}', "answers: missing"),
    ('{"answer": "a"}', "question: missing"),
    ('{"question": ["q"], "answer": "a"}', "question: a text is expected"),
    ('{"question": "q", "answer": "a", "answers": ["b"]}', "answers and answer mean the same"),
    ('{"question": "q", "answer": "。！"}', "no letter, digit or ideograph"),
    ('{"question": "q", "answer": "-1"}', "stands for 'no answer'"),
    ('{"question": "q", "answer": "a", "cites": ["boil"]}', "column 'cites': did you mean 'cited'?"),
    ('{"question": "q", "answer": "a", "cited": ["zzz"]}', "'zzz' is the id of no note"),
    ('{"question": "q", "answer": "a", "notes": ["zzz"]}', "notes: 'zzz' is the id of no note"),
    ('{"question": "q", "answer": "a", "id": "first"}', "'first' is that of qa.jsonl, line 1 too"),
    ('{"question": "q",', "not JSON"),
    ("[1, 2]", "one JSON object a line"),
]


@pytest.mark.parametrize(("line", "message"), FAULTS)
def test_a_fault_is_named_with_its_line(
    tmp_path: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write(tmp_path / "corpus.jsonl", CORPUS)
    file = tmp_path / "qa.jsonl"
    file.write_text(f'{{"id": "first", "question": "q", "answer": "a"}}\n\n{line}\n', encoding="utf-8")
    assert new_data(tmp_path / "mine", file, "--notes", str(corpus)) == 1
    said = capsys.readouterr().err
    (named,) = [each for each in said.splitlines() if each.startswith("  ")]
    assert named.startswith("  qa.jsonl, line 3: ") and message in named
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "qa.jsonl"]


def test_all_faults_of_all_files_are_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write(
        tmp_path / "corpus.csv", [{"id": "1", "text": "一"}, {"id": "1", "text": "二"}, {"id": "3", "text": ""}]
    )
    questions = write(tmp_path / "qa.parquet", [{"question": None, "answer": "a"}] * 30)
    assert new_data(tmp_path / "mine", questions, "--notes", str(corpus)) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: 32 faults, nothing was written:")
    assert "corpus.csv, line 3: id '1' is there twice" in said and "corpus.csv, line 4: a note without text (3)" in said
    assert "qa.parquet, row 1: question: missing" in said and "and 12 more" in said


def test_lines_of_a_csv_are_counted_as_an_editor_counts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "qa.csv"
    file.write_text('question,answer\n"two\nlines",a\nq,\n"q",b,c\n', encoding="utf-8")
    assert new_data(tmp_path / "mine", file) == 1
    said = capsys.readouterr().err
    assert "line 4: answers: missing" in said and "line 5: 3 cells under 2 columns" in said


def test_a_bracket_in_a_csv_cell_may_be_text(tmp_path: Path) -> None:
    file = tmp_path / "qa.csv"
    file.write_text('question,answer\nq,"[1] says so"\nq,"[""a"", ""b""]"\n', encoding="utf-8")
    assert new_data(tmp_path / "mine", file) == 0
    assert [document["references"] for document in documents(tmp_path / "mine", "na")] == [["[1] says so"], ["a", "b"]]


def test_a_folder_is_replaced_only_when_asked_and_only_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path)
    file = write(tmp_path / "qa.jsonl", QUESTIONS[1:2])
    before = sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert new_data(folder, file) == 1 and "--overwrite" in capsys.readouterr().err
    faulty = write(tmp_path / "bad.jsonl", [{"question": "q"}])
    assert new_data(folder, faulty, "--overwrite") == 1
    assert sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file()) == before
    corpus = str(tmp_path / "corpus.jsonl")
    assert new_data(folder, file, "--notes", corpus, "--overwrite") == 0
    assert [document["question_id"] for document in documents(folder, "bm25")] == ["b"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").touch()
    assert new_data(other, file, "--notes", corpus, "--overwrite") == 1
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_unknown_suffix_and_a_missing_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_data(tmp_path / "mine", tmp_path / "qa.xlsx") == 1
    assert "choose from .csv, .json, .jsonl, .parquet" in capsys.readouterr().err
    assert new_data(tmp_path / "mine", tmp_path / "qa.csv") == 1
    assert "no such file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: text.strip() not in ("", "-1"))


@settings(max_examples=30)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"question": TEXTS.map("问".__add__), "answers": st.lists(TEXTS.map("答".__add__), min_size=1, max_size=3)}
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("own")
    assert new_data(folder / "mine", write(folder / "qa.jsonl", rows)) == 0
    found = documents(folder / "mine", "na")
    assert [document["query"] for document in found] == [row["question"].strip() for row in rows]
    expected = [list(dict.fromkeys(text.strip() for text in row["answers"])) for row in rows]
    assert [document["references"] for document in found] == expected


def test_what_a_condition_lacks_is_said_with_the_command(tmp_path: Path) -> None:
    folder = made(tmp_path, questions=[{"question": "q", "answer": "a"}])
    with pytest.raises(DataError, match=r"qilin-tasks prepare .*--retriever dense --out .*bert\.parquet"):
        documents(folder, "bert")
    with pytest.raises(DataError, match="no question cites a note"):
        documents(folder, "oracle")
    with pytest.raises(DataError, match="no notes came with the questions"):
        documents(folder, "contexts")
    with pytest.raises(DataError, match="no such folder; make one: qilin-tasks new-data"):
        documents(tmp_path / "nothing", "na")
    with pytest.raises(SettingError, match="--metadata path=FOLDER"):
        documents(folder, "na", path=None)


def test_a_run_of_ones_own_in_the_folder_or_named(tmp_path: Path) -> None:
    folder = made(tmp_path)
    run = tmp_path / "other.parquet"
    prepare = ["prepare", "--config", "dqa", "--data", str(folder), "--retriever", "bm25", "--quiet"]
    assert cli.main([*prepare, "--top-k", "1", "--out", str(run)]) == 0
    assert all(len(shown) == 1 for shown in titles(documents(folder, "contexts", contexts=str(run))))
    with pytest.raises(SettingError, match="the retriever 'bm25' made this run"):
        documents(folder, "bert", contexts=str(run))


def test_tasks_of_qilin_refuse_several_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", str(made(tmp_path)))
    for task in ("qilin_dqa_na", "qilin_dqa_cite"):
        with pytest.raises(DataError, match=r"several references.*custom_dqa_"):
            evaluate([task], ScriptedModel("好"))


def test_a_single_reference_scores_as_qilins_own_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path, questions=[{**row, "answers": row["answers"][:1]} for row in QUESTIONS])
    monkeypatch.setenv("QILIN_DATA", str(folder))
    answer = "煮八分钟，不建议。"
    ours = evaluate(["custom_dqa_oracle"], ScriptedModel(answer), metadata={"path": str(folder)}, log_samples=True)
    theirs = evaluate(["qilin_dqa_oracle"], ScriptedModel(answer), log_samples=True)
    pairs = zip(ours["samples"]["custom_dqa_oracle"], theirs["samples"]["qilin_dqa_oracle"], strict=True)
    for mine, other in pairs:
        assert {name: mine[name] for name in other["metrics"]} == {name: other[name] for name in other["metrics"]}


def test_conditions_run_and_the_signature_says_references_and_data(tmp_path: Path) -> None:
    folder = made(tmp_path)
    answers = {"a": "八分钟", "b": "不建议，容易腹泻。", "c": "别处"}
    model = ScriptedModel(lambda request: answers[request.doc["question_id"]])
    results = evaluate(["custom_dqa"], model, metadata={"path": str(folder)}, log_samples=True)
    for context in ("na", "bm25", "oracle"):
        task = f"custom_dqa_{context}"
        signature = results["configs"][task]["metadata"]["signature"]
        assert (
            signature.startswith("custom_dqa|ctx:" + context) and "|refs:2|data:" in signature and "|n:3|" in signature
        )
        values = {sample["doc"]["question_id"]: sample["rouge_l"] for sample in results["samples"][task]}
        assert values == {"a": 1.0, "b": 1.0, "c": 0.0}
        assert results["samples"][task][0]["target"] == QUESTIONS[0]["answers"]
    assert metric(results, "custom_dqa", "rouge_l") == pytest.approx(2 / 3)
    prompts = [request.args[0] for request in model.seen]
    assert all("小红书" not in prompt for prompt in prompts) and sum("【资料1】" in prompt for prompt in prompts) == 6


def test_another_language_has_an_english_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": "Wie lange?", "answer": "Acht Minuten.", "notes": ["Acht Minuten kochen."]}]
    file = write(tmp_path / "qa.jsonl", rows)
    with pytest.raises(SystemExit):
        new_data(tmp_path / "mine", file, "--language", "xx")
    assert "choose from" in capsys.readouterr().err
    assert new_data(tmp_path / "mine", file, "--language", "de") == 0
    model = ScriptedModel("Acht Minuten.")
    results = evaluate(["custom_dqa_contexts"], model, metadata={"path": str(tmp_path / "mine")})
    assert metric(results, "custom_dqa_contexts", "rouge_l") == 1.0
    assert model.seen[0].args[0].endswith("[Note 1]\nAcht Minuten kochen.\n\nQuestion: Wie lange?\nAnswer:")


def test_the_example_of_the_page_runs(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repo / "docs" / "own-data.md").read_text(encoding="utf-8")
    questions, corpus = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("qa.jsonl").write_text(questions, encoding="utf-8")
    Path("corpus.jsonl").write_text(corpus, encoding="utf-8")
    make, run = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)[0].splitlines()
    assert cli.main(shlex.split(make)[1:]) == 0
    assert cli.main(shlex.split(run)[1:]) == 0
    assert re.search(r"custom_dqa_oracle *\|.*\n(?:.*\n){0,20}.*rouge_l ", capsys.readouterr().out)


def test_the_columns_of_the_page_are_those_that_are_read(repo: Path) -> None:
    page = (repo / "docs" / "own-data.md").read_text(encoding="utf-8")
    tables = re.findall(r"\| column \|.*?\n\n", page, re.DOTALL)
    named = [
        {tuple(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines()[2:] if row} for table in tables
    ]
    for columns, read in zip(named, (QUESTION_COLUMNS, NOTE_COLUMNS), strict=True):
        assert {frozenset(names) for names in columns} == {frozenset(names) for names in read.values()}


REFERENCE_METRICS = {
    "custom_dqa": ("rouge_l", "rouge_l_jieba", "fact_f1", "contradicted_rate"),
    "reqa_reader": ("em", "f1", "rouge_l", "meteor"),
}
PIECES = st.lists(st.sampled_from(["煮8分钟。", "煮3分钟。", "不能喝牛奶。", "能喝牛奶。", "Rhine 12"]), min_size=1)


def values_of(family: str, answers: list[str], references: list[list[str]]) -> list[dict[str, float]]:
    """Each document's reference metrics."""
    chosen = FAMILIES[family]
    if family == "custom_dqa":
        given = {**defaults("qilin/_custom_dqa_yaml"), "context": "na", "path": "."}
        docs: list[dict[str, Any]] = [
            {"query": "q", "notes": [], "reference": golds[0], "references": golds} for golds in references
        ]
    else:
        given = {**defaults("reqa/_reqa_reader_yaml"), "context": "na", "set": "xquad_zh"}
        docs = [{"answers": golds, "language": "zh", "answer_shown": 0} for golds in references]
    scorer = chosen.scorer(chosen.settings.from_metadata({**given, "bertscore": "off"}))
    rows = scorer.score(docs, [[answer] for answer in answers])
    return [{name: row[name] for name in REFERENCE_METRICS[family]} for row in rows]


@pytest.mark.parametrize("family", sorted(REFERENCE_METRICS))
@settings(max_examples=25)
@given(answer=PIECES.map("".join), references=st.lists(PIECES.map("".join), min_size=1, max_size=4))
def test_the_best_reference_counts_for_every_metric(family: str, answer: str, references: list[str]) -> None:
    table = FAMILIES[family].scorer.METRICS
    together, turned, *alone = values_of(
        family, [answer] * (len(references) + 2), [references, references[::-1], *[[text] for text in references]]
    )
    assert together == turned
    for name, value in together.items():
        best = max if table[name].higher_is_better else min
        assert value == best(row[name] for row in alone), name


def test_every_metric_that_reads_a_reference_is_among_them() -> None:
    """A metric whose value changes with the reference must take the best of several."""
    one, other = values_rows("煮8分钟。"), values_rows("不能喝牛奶，煮3分钟。")
    assert {name for name in one if one[name] != other[name]} <= set(REFERENCE_METRICS["custom_dqa"])


def values_rows(reference: str) -> dict[str, float]:
    chosen = FAMILIES["custom_dqa"]
    given = {**defaults("qilin/_custom_dqa_yaml"), "context": "na", "path": ".", "bertscore": "off"}
    doc = {"query": "q", "notes": [], "reference": reference, "references": [reference]}
    return chosen.scorer(chosen.settings.from_metadata(given)).score([doc], [["煮8分钟，能喝牛奶。"]])[0]
