"""Rescoring files that the real harness wrote with our tasks, on the embedded samples."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import pytest
from lm_eval.loggers import EvaluationTracker
from support.evaluation import ScriptedModel, evaluate
from support.runs import write_run

from qilin_tasks.commands import rescore as command
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.files import together
from qilin_tasks.results.reader import TaskResult, find_results, iter_samples, read_results
from qilin_tasks.results.rescore import original, rescore


def likelihood(request: Any) -> float:
    """Some number that depends on the request."""
    return -1.0 - hashlib.sha256("".join(request.args).encode()).digest()[0] / 7


def save(folder: Path, task: str, model: Any, **metadata: Any) -> TaskResult:
    tracker = EvaluationTracker(output_path=str(folder))
    results = evaluate([task], model, metadata=metadata, evaluation_tracker=tracker)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=task, samples=samples[task])
    (result,) = find_results([folder])
    return result


def again(result: TaskResult, changes: dict[str, Any]) -> TaskResult:
    """Rescore one result alone and read what came of it."""
    with together() as files:
        done = rescore(result, changes, into=files)
    return next(r for r in read_results(done.path) if r.task == result.task)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["rescore", *arguments])
    return int(args.run(args))


@pytest.fixture(scope="module")
def dqa(tmp_path_factory: pytest.TempPathFactory) -> TaskResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        model = ScriptedModel(lambda r: f"<think>想</think>{r.doc['reference'][: r.doc['doc_key'] % 9]}旅行")
        return save(tmp_path_factory.mktemp("dqa"), "qilin_dqa_bm25", model)


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("qilin_dqa_na", lambda r: f"</think>{r.doc['reference'][:5]}"),
        ("qilin_search_listwise", lambda r: "[2] > [1] > [2] > [99]"),
        ("qilin_search_pointwise", likelihood),
    ],
)
def test_the_same_settings_give_the_same_numbers(
    task: str, answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    before = save(tmp_path, task, ScriptedModel(answer))
    done = again(before, {})
    assert done.path.parent == before.path.parent
    assert done.values == pytest.approx(dict(before.values), abs=1e-12)
    assert done.errors == pytest.approx(dict(before.errors), abs=1e-12)
    assert done.signature == before.signature
    assert dict(done.higher_is_better) == dict(before.higher_is_better)
    assert [s.scores for s in iter_samples(done)] == [s.scores for s in iter_samples(before)]


def test_another_bertscore_model(dqa: TaskResult, minilm: Path) -> None:
    whole = dqa.path.read_bytes()
    with together() as files:
        changes = {"bertscore": "on", "bertscore_model": str(minilm), "bertscore_layer": 4}
        rescored = rescore(dqa, changes, into=files)
    (done,) = read_results(rescored.path)
    before, after = rescored.changes["bertscore_f1"]
    assert before is None
    assert 0 < after < 1
    assert rescored.changes["rouge_l"][0] == pytest.approx(rescored.changes["rouge_l"][1], abs=1e-12)
    assert "_L4" in (done.signature or "")
    assert done.parts["data"] == dqa.parts["data"]
    assert dqa.path.read_bytes() == whole
    assert original(done).path == dqa.path
    # The rescored file is the newest, so it is what a report shows.
    (shown,) = find_results([dqa.path.parent])
    assert shown.path == done.path


def test_what_made_the_prompts_can_not_change(dqa: TaskResult) -> None:
    with pytest.raises(SettingError, match="'top_k': the prompts of qilin_dqa_bm25 were made with it"):
        again(dqa, {"top_k": 3})
    with pytest.raises(SettingError, match="bertscore 'maybe'"):
        again(dqa, {"bertscore": "maybe"})


def test_results_of_other_tasks_are_refused(tmp_path: Path) -> None:
    doc = [{"doc_key": 1, "reference": "a"}]
    write_run(tmp_path / "a", model="m", task="gsm8k", docs=doc, responses=["x"], scores=[{"em": 1.0}], signature=None)
    with pytest.raises(SettingError, match="no signature of qilin-tasks"):
        again(find_results([tmp_path / "a"])[0], {})
    write_run(tmp_path / "b", model="m", task="t", docs=doc, responses=["x"], scores=[{"em": 1.0}], signature="xyz|k:1")
    with pytest.raises(SettingError, match=r"family .xyz.: choose from custom_dqa, dqa,"):
        again(find_results([tmp_path / "b"])[0], {})


def test_a_cut_off_file_writes_nothing(tmp_path: Path, dqa: TaskResult) -> None:
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(dqa.path.parent, folder)
    for path in folder.glob("samples_*"):
        path.write_bytes(path.read_bytes()[:-30])
    names = sorted(path.name for path in folder.iterdir())
    with pytest.raises(DataError, match="not a whole JSON object"):
        run(str(folder))
    assert sorted(path.name for path in folder.iterdir()) == names


def test_one_broken_result_among_many_leaves_all_as_they_were(tmp_path: Path, dqa: TaskResult) -> None:
    import shutil

    for name in ("a", "b", "c"):
        shutil.copytree(dqa.path.parent, tmp_path / name)
        for path in (tmp_path / name).glob("results_*.json"):
            path.write_text(path.read_text(encoding="utf-8").replace('"model_name": "', f'"model_name": "{name}'))
    for path in (tmp_path / "c").glob("samples_*"):
        path.write_bytes(path.read_bytes()[:-30])
    names = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(DataError, match="not a whole JSON object"):
        run(str(tmp_path))
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == names


def test_the_command(dqa: TaskResult, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(dqa.path.parent)
    assert run(folder, "--tasks", "qilin_dqa_bm25") == 0
    assert "qilin_dqa_bm25: " in capsys.readouterr().out
    with pytest.raises(SettingError, match="--tasks 'nothing': choose from qilin_dqa_bm25"):
        run(folder, "--tasks", "nothing")
    with pytest.raises(SettingError, match="prompts"):
        run(folder, "--metadata", "note_chars=10")
