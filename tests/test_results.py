from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runs import sample_line, write_run

from qilin_tasks.errors import DataError
from qilin_tasks.results.reader import find_results, iter_samples, read_results, sample_of_line
from qilin_tasks.signature import signature_parts

DOCS = [{"doc_key": key, "query": f"问题{key}", "reference": "答案"} for key in (7, 8, 9)]


def a_run(folder: Path, **changes: object) -> Path:
    options = {
        "model": "m",
        "task": "qilin_dqa_bm25",
        "docs": DOCS,
        "responses": ["一", "二", "三"],
        "scores": [{"rouge_l": value, "empty_rate": 0.0} for value in (0.1, 0.2, 0.6)],
        "lower_is_better": ["empty_rate"],
    }
    return write_run(folder, **{**options, **changes})  # type: ignore[arg-type]


def test_what_a_results_file_says(tmp_path: Path) -> None:
    result = read_results(a_run(tmp_path))[0]
    assert (result.model, result.task, result.n) == ("m", "qilin_dqa_bm25", 3)
    assert result.values["rouge_l"] == pytest.approx(0.3)
    assert result.higher_is_better == {"rouge_l": True, "empty_rate": False}
    assert result.parts == {"family": "dqa", "ctx": "bm25", "data": "d1", "n": "3", "v": "1.0"}
    samples = list(iter_samples(result))
    assert [s.key for s in samples] == [7, 8, 9]
    assert [s.scores["rouge_l"] for s in samples] == [0.1, 0.2, 0.6]
    assert samples[1].doc["query"] == "问题8"
    assert samples[1].responses == [["二"]]
    assert samples[1].prompts == ["Q: 问题8"]


@pytest.mark.slow
def test_files_that_the_harness_itself_writes(tmp_path: Path) -> None:
    """A stock task through the real command line, with the harness's dummy model."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"question": f"q{i}", "answer": "lol"}) + "\n" for i in range(10)))
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "toy.yaml").write_text(
        f"task: toy\ndataset_path: json\ndataset_kwargs: {{data_files: {data}}}\ntest_split: train\n"
        "output_type: generate_until\ndoc_to_text: 'Q: {{question}}'\ndoc_to_target: '{{answer}}'\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\nmetadata: {version: 1.0}\n"
    )
    command = [
        sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--include_path", str(tmp_path / "tasks"),
        "--tasks", "toy", "--log_samples", "--output_path", str(tmp_path / "out"),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (result,) = find_results([tmp_path / "out"])
    samples = list(iter_samples(result))
    assert result.n == len(samples) == 10
    assert result.values == {"exact_match": 1.0}
    assert result.signature is None
    assert result.parts == {}
    assert [s.key for s in samples] == list(range(10))
    assert samples[3].scores == {"exact_match": 1.0}
    assert samples[3].prompts == ["Q: q3"]


def test_the_newest_file_counts_and_unfinished_folders_do_not(tmp_path: Path) -> None:
    a_run(tmp_path / "m")
    newer = a_run(tmp_path / "m", date=2.0, time="2026-12-02T00-00-00.000000")
    a_run(tmp_path / ".unfinished-qilin_dqa_bm25", date=3.0)
    assert [r.path for r in find_results([tmp_path])] == [newer]


def test_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for run in ("runs1", "runs2"):
        a_run(tmp_path / run / "m" / "qilin_dqa_bm25")
    a_run(tmp_path / "runs1" / "m" / "other", task="other")
    found = find_results([tmp_path / "runs1", tmp_path / "runs2", tmp_path / "runs1" / "m"])
    assert [(r.model, r.task) for r in found] == [
        ("m (runs1)", "other"),
        ("m (runs1)", "qilin_dqa_bm25"),
        ("m (runs2)", "qilin_dqa_bm25"),
    ]
    (tmp_path / "runs2" / "m").rename(tmp_path / "runs1" / "m-renamed")
    assert {r.model for r in find_results([tmp_path / "runs1"])} == {"m (m)", "m (m-renamed)"}


def arguments(path: Path, given: object) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    data["config"]["model_args"] = given
    path.write_text(json.dumps(data), encoding="utf-8")


def test_a_model_is_one_row_through_its_conditions(tmp_path: Path) -> None:
    """Two precisions of one model, each asked two tasks into folders of its own: two rows, not four."""
    for number in ("float16", "bfloat16"):
        for task in ("na", "bm25"):
            arguments(a_run(tmp_path / f"{task}-{number}" / "m", task=task), f"pretrained=m,dtype={number}")
    found = [(r.model, r.task) for r in find_results([tmp_path])]
    assert found == [(f"m (dtype={number})", task) for number in ("bfloat16", "float16") for task in ("bm25", "na")]
    # Without a second precision nothing has to be told apart, whatever the folders are called.
    assert {r.model for r in find_results([tmp_path / "na-float16", tmp_path / "bm25-float16"])} == {"m"}


def test_folders_of_the_same_arguments_take_the_fewest_labels(tmp_path: Path) -> None:
    for run in ("first", "second"):
        for task in ("na", "bm25"):
            a_run(tmp_path / run / task / "m", task=task)
    assert [r.model for r in find_results([tmp_path])] == ["m (first)"] * 2 + ["m (second)"] * 2
    # A label never stands for two models: here the runs' folders would mix their precisions.
    for path in (tmp_path / "first" / "na" / "m").glob("results_*"):
        arguments(path, {"pretrained": "m", "dtype": "float16"})
    labels = [(r.model, r.path.parts[-4:-2]) for r in find_results([tmp_path])]
    assert len({model for model, _ in labels if "first" in model}) == 2


def test_a_damaged_file_is_named_and_left_out_where_that_is_wanted(tmp_path: Path) -> None:
    whole = a_run(tmp_path / "a")
    damaged = a_run(tmp_path / "b")
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(DataError, match="cut off"):
        find_results([tmp_path])
    faults: list[str] = []
    assert [r.path for r in find_results([tmp_path], faults=faults)] == [whole]
    assert len(faults) == 1
    assert str(damaged) in faults[0]


def test_a_folder_that_the_harness_names_after_a_relative_path_is_read(tmp_path: Path) -> None:
    path = a_run(tmp_path / ".__model")
    assert [r.path for r in find_results([tmp_path])] == [path]


def test_baselines_that_the_harness_names_alike_stay_apart(tmp_path: Path) -> None:
    """Without `pretrained` or `model` the harness draws a name, which its fixed seed makes the same for all."""
    for minute, strategy in enumerate(("lead", "empty")):
        path = a_run(
            tmp_path / "r0cytw4c",
            model="r0cytw4c",
            source="qilin-baseline",
            time=f"2026-12-01T00-0{minute}-00.000000",
        )
        data = json.loads(path.read_text("utf-8"))
        data["config"]["model_args"] = {"strategy": strategy}
        path.write_text(json.dumps(data), encoding="utf-8")
    assert [(r.model, r.path.name) for r in find_results([tmp_path])] == [
        ("empty", "results_2026-12-01T00-01-00.000000.json"),
        ("lead", "results_2026-12-01T00-00-00.000000.json"),
    ]


def test_a_cut_off_samples_file_is_named(tmp_path: Path) -> None:
    result = read_results(a_run(tmp_path))[0]
    assert result.samples_path is not None
    whole = result.samples_path.read_text(encoding="utf-8")
    result.samples_path.write_text(whole[:-40], encoding="utf-8")
    with pytest.raises(DataError, match=r"samples_qilin_dqa_bm25.*line 3: not a whole JSON object"):
        list(iter_samples(result))
    result.samples_path.write_text("".join(whole.splitlines(keepends=True)[:2]), encoding="utf-8")
    with pytest.raises(DataError, match=r"2 samples .* counts 3 documents"):
        list(iter_samples(result))
    result.samples_path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="0 samples"):
        list(iter_samples(result))


def test_a_missing_samples_file_says_how_to_get_it(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    next(tmp_path.glob("samples_*")).unlink()
    with pytest.raises(DataError, match="--log_samples"):
        list(iter_samples(read_results(path)[0]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"results": {}, "versions": {}, "lm_eval_version": "0.3.0"}', r"'configs'.*0\.3\.0"),
        (b"[1]", "list instead of"),
        (b'{"results"', "not a whole JSON object"),
        (b'{"results": "\xff"}', "not UTF-8"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "results_x.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_results(path)


def test_folders_without_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no results_"):
        find_results([tmp_path])
    with pytest.raises(DataError, match="does not exist"):
        find_results([tmp_path / "nowhere"])


def test_no_signature_no_parts() -> None:
    assert signature_parts(None) == {}
    assert signature_parts("dqa|hub:a:b") == {"family": "dqa", "hub": "a:b"}


@settings(max_examples=60, deadline=None)
@given(st.text(), st.text(), st.floats(0, 1), st.one_of(st.integers(), st.text()))
def test_the_quick_reading_of_a_line_equals_the_whole_one(query: str, response: str, score: float, key: object) -> None:
    """Texts that hold the very keys of a sample don't mislead it."""
    doc = {"doc_key": key, "query": query + '", "resps": [', "resps": 1, "nested": {"a": 1, "resps": [response]}}
    line = sample_line(doc, index=3, response=response + ', "resps": ', scores={"rouge_l": score})
    sample = sample_of_line(json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace"), "here")
    assert sample.doc == doc
    assert sample.key == key
    assert sample.responses == line["resps"]
    assert sample.scores == {"rouge_l": score}
    assert sample.doc_id == 3
