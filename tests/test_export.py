"""Results in others' formats: by their own validators where they are installed, and back without a loss."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.runs import write_run

from qilin_tasks.commands import export as command
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.export.exported import Exported, exported, turns
from qilin_tasks.results.reader import find_results, iter_samples

SIGNATURE = "dqa|ctx:bm25|k:5|data:d1|n:3|v:1.0"
#: A folder with Every Eval Ever's two schemas: github.com/evaleval/every_eval_ever, every_eval_ever/schemas/.
SCHEMAS = os.environ.get("EVERY_EVAL_EVER_SCHEMAS", "")
CHAT = json.dumps([{"role": "system", "content": "你是助手"}, {"role": "user", "content": "问"}], ensure_ascii=False)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two models on two tasks; one is a folder of this machine, one answers with reasoning."""
    for model, source in (("qwen", "vllm"), ("served", "local-chat-completions")):
        for task in ("qilin_dqa_bm25", "qilin_dqa_na"):
            path = write_run(
                tmp_path / "runs" / model / task,
                model=model,
                task=task,
                docs=[{"doc_key": 3 * i, "query": f"问题{i}", "reference": f"参考{i}"} for i in range(3)],
                responses=["<think>嗯</think>煮八分钟", "", 'a "quoted"\n\u2028line'],
                scores=[{"rouge_l": i / 2, "answer_chars": 7.0 * i} for i in range(3)],
                signature=SIGNATURE,
                metadata={"context": "bm25"},
                source=source,
                date=1.7e9,
            )
            data = json.loads(path.read_text())
            name = {"pretrained": "Qwen/Qwen2.5-7B"} if source == "vllm" else {"model": "served-name"}
            data["config"]["model_args"] = name
            cost = {"prompt": 30, "generated": 9, "reasoning": 2, "counted": 3, "answers": 3}
            data["compare"] = {"cost": {**cost, "sources": ["engine"], "seconds": 2.0, "peak_bytes": None}}
            path.write_text(json.dumps(data, ensure_ascii=False))
            samples = next(path.parent.glob("samples_*.jsonl"))
            lines = [json.loads(line) for line in samples.read_text(encoding="utf-8").rstrip("\n").split("\n")]
            lines[0]["arguments"]["gen_args_0"]["arg_0"] = [CHAT]
            samples.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return tmp_path / "runs"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["export", *arguments])
    return int(args.run(args))


def export(runs: Path, form: str, *more: str) -> dict[str, Any]:
    """Every file by its path below the folder, parsed."""
    out = runs.parent / form
    assert run(str(runs), "--format", form, "--out", str(out), *more) == 0
    found: dict[str, Any] = {}
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            found[str(path.relative_to(out))] = [json.loads(line) for line in text.rstrip("\n").split("\n")]
        else:
            found[str(path.relative_to(out))] = yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)
    return found


def results(runs: Path) -> list[Exported]:
    return [exported(result) for result in find_results([runs])]


def test_every_eval_ever_and_back(runs: Path) -> None:
    files = export(runs, "every-eval-ever", "--organization", "us", "--relationship", "third_party")
    logs = {name: log for name, log in files.items() if name.endswith(".json")}
    assert len(logs) == 4
    by_id = {log["evaluation_id"]: (name, log) for name, log in logs.items()}
    for one in results(runs):
        name, log = by_id[f"{one.result.task}/{one.model_id}/1700000000"]
        assert name.split("/")[:4] == (
            ["data", "qilin-tasks", "Qwen", "Qwen2.5-7B"]
            if one.result.model == "qwen"
            else ["data", "qilin-tasks", "unknown", "served-name"]
        )
        assert log["eval_library"]["additional_details"]["signature"] == SIGNATURE
        scores = {row["metric_config"]["metric_id"]: row["score_details"] for row in log["evaluation_results"]}
        assert {metric: details["score"] for metric, details in scores.items()} == pytest.approx(
            dict(one.result.values)
        )
        uncertain = scores["rouge_l"]["uncertainty"]
        assert uncertain["standard_error"]["value"] == one.interval("rouge_l").se
        assert uncertain["num_samples"] == 3
        detail = log["detailed_evaluation_results"]
        rows = files[detail["file_path"]]
        assert detail["total_rows"] == len(rows) == 3
        for row, sample in zip(rows, iter_samples(one.result), strict=True):
            assert row["evaluation_result_id"] in {r["evaluation_result_id"] for r in log["evaluation_results"]}
            assert {metric: float(value) for metric, value in row["metadata"].items()} == sample.scores
            assert row["evaluation"]["score"] == sample.scores["rouge_l"]
            assert row["output"]["raw"] == sample.responses[0]
            assert (row["sample_id"], row["input"]["reference"]) == (str(sample.key), [sample.target])
        assert [row["evaluation"]["is_correct"] for row in rows] == [False, False, True]
        assert rows[0]["answer_attribution"][0]["extracted_value"] == "煮八分钟"


def test_the_same_result_is_the_same_file(runs: Path) -> None:
    first = export(runs, "every-eval-ever")
    assert export(runs, "every-eval-ever") == first


@pytest.mark.skipif(not SCHEMAS, reason="EVERY_EVAL_EVER_SCHEMAS names no folder with the schemas")
def test_every_eval_ever_by_its_schemas(runs: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    whole, row = (
        jsonschema.Draft7Validator(json.loads((Path(SCHEMAS) / f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    for name, content in export(runs, "every-eval-ever").items():
        if name.endswith(".json"):
            whole.validate(content)
            assert not whole.is_valid({**content, "signature": "x"})
        else:
            for line in content:
                row.validate(line)


def test_eval_results_and_back(runs: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    files = export(runs, "eval-results")
    assert sorted(files) == [f"{model}/.eval_results/qilin-tasks.yaml" for model in ("qwen", "served")]
    for name, content in files.items():
        mine = [one for one in results(runs) if one.result.model == name.split("/")[0]]
        if hasattr(hub, "parse_eval_result_entries"):
            entries = hub.parse_eval_result_entries(content)
            assert hub.eval_result_entries_to_yaml(entries) == content
        assert [(row["dataset"]["task_id"], row["value"]) for row in content] == [
            (one.result.task, one.result.values["rouge_l"]) for one in mine
        ]
        assert {row["dataset"]["id"] for row in content} == {"THUIR/Qilin"}
        assert all(row["notes"] == f"rouge_l, n=3, {SIGNATURE}" for row in content)
        assert content[0]["date"] == "2023-11-14T22:13:20Z"
    other = export(runs, "eval-results", "--metric", "answer_chars", "--dataset", "a/b", "--tasks", "qilin_dqa_na")
    assert [row["dataset"] for row in other["qwen/.eval_results/qilin-tasks.yaml"]] == [
        {"id": "a/b", "task_id": "qilin_dqa_na"}
    ]


def test_inspect_s_log_and_back(runs: Path) -> None:
    files = export(runs, "inspect")
    assert len(files) == 4
    for one in results(runs):
        [log] = [
            log
            for log in files.values()
            if (log["eval"]["task"], log["eval"]["metadata"]["model_name"]) == (one.result.task, one.result.model)
        ]
        assert log["eval"]["metadata"]["signature"] == SIGNATURE
        assert {row["name"]: row["metrics"]["mean"]["value"] for row in log["results"]["scores"]} == pytest.approx(
            dict(one.result.values)
        )
        for row, sample in zip(log["samples"], iter_samples(one.result), strict=True):
            assert row["id"] == sample.key
            assert {name: score["value"] for name, score in row["scores"].items()} == sample.scores
            assert row["output"]["choices"][0]["message"]["content"] == sample.responses[0][0]
        assert [message["role"] for message in log["samples"][0]["messages"]] == ["system", "user", "assistant"]
        assert log["stats"]["model_usage"][log["eval"]["model"]]["total_tokens"] == 39


def test_inspect_reads_its_log(runs: Path) -> None:
    inspect_log = pytest.importorskip("inspect_ai.log")
    export(runs, "inspect")
    for path in (runs.parent / "inspect").glob("*.json"):
        log = inspect_log.read_eval_log(str(path))
        assert log.status == "success"
        assert log.eval.metadata["signature"] == SIGNATURE
        assert log.results.scores[0].metrics["mean"].value == 0.5
        assert [sample.scores["rouge_l"].value for sample in log.samples] == [0.0, 0.5, 1.0]
        assert log.samples[0].output.completion == "<think>嗯</think>煮八分钟"
        # Written by Inspect in its own binary format and read again, nothing is lost.
        again = path.with_suffix(".eval")
        inspect_log.write_eval_log(log, str(again))
        assert inspect_log.read_eval_log(str(again)).samples == log.samples


def test_a_folder_of_this_machine_is_not_named(runs: Path, tmp_path: Path) -> None:
    for path in runs.rglob("results_*.json"):
        data = json.loads(path.read_text())
        if data["model_name"] == "qwen":
            data["config"]["model_args"] = {"pretrained": str(tmp_path / "weights" / "of" / "mine")}
            path.write_text(json.dumps(data))
    names = {one.model_id for one in results(runs)}
    assert names == {"qwen", "served-name"}
    assert str(tmp_path) not in json.dumps(export(runs, "every-eval-ever"))


def test_what_can_not_be_exported_is_named(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="--metric 'em': qilin_dqa_bm25 has rouge_l, answer_chars"):
        export(runs, "eval-results", "--metric", "em")
    with pytest.raises(SettingError, match="--tasks 'reqa': choose from qilin_dqa_bm25, qilin_dqa_na"):
        export(runs, "eval-results", "--tasks", "reqa")
    docs = [{"doc_key": 0, "query": "q"}]
    write_run(tmp_path / "r", model="m", task="t", docs=docs, responses=["x"], scores=[{"acc": 1.0}], signature=None)
    with pytest.raises(SettingError, match=r"t: its data set has no id on the hub.*--dataset"):
        export(tmp_path / "r", "eval-results")
    assert not (tmp_path / "eval-results" / "m" / ".eval_results" / "qilin-tasks.yaml").exists()
    [path] = (tmp_path / "r").glob("samples_*")
    path.unlink()
    with pytest.raises(DataError, match="no samples file"):
        export(tmp_path / "r", "inspect")


def test_prompts_become_messages() -> None:
    assert [(turn.role, turn.text) for turn in turns(CHAT)] == [("system", "你是助手"), ("user", "问")]
    for text in ("plain", "[1, 2]", "[]", '{"role": "user"}', '"x"'):
        assert [(turn.role, turn.text) for turn in turns(text)] == [("user", text)]
