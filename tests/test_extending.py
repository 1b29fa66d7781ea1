"""docs/extending.md: every block runs, in its order, and does what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.evaluation import ScriptedModel

from qilin_tasks import tasks_folder

BLOCK = re.compile(r"```(python|yaml)\n# (\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def blocks(repo: Path) -> dict[str, str]:
    """The text of each block by the file that its first line names."""
    page = (repo / "docs" / "extending.md").read_text(encoding="utf-8")
    found = {name: text for _, name, text in BLOCK.findall(page)}
    assert len(found) == page.count("```") // 2
    return found


def write(blocks: dict[str, str], names: list[str], folder: Path) -> Path:
    for name in names:
        text = blocks[name].replace("BASE", str(tasks_folder() / "qilin"))
        (folder / Path(name).name).write_text(text, encoding="utf-8")
    return folder


def evaluate(name: str, folder: Path, model: Any, **options: Any) -> dict[str, Any]:
    import lm_eval

    from qilin_tasks.harness.task_manager import task_manager

    manager = task_manager([name], metadata={"bertscore": "off"}, include_path=[str(folder)])
    results = lm_eval.simple_evaluate(model=model, tasks=[name], task_manager=manager, bootstrap_iters=0, **options)
    assert results is not None
    return dict(results)


def test_a_metric_is_its_file_its_row_and_its_test(
    blocks: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from qilin_tasks.dqa import scorer
    from qilin_tasks.harness.baseline import QilinBaseline

    space: dict[str, Any] = {"METRICS": scorer.METRICS, "Metric": scorer.Metric}
    for name in ("qilin_tasks/metrics/length_ratio.py", "tests/test_length_ratio.py", "qilin_tasks/dqa/scorer.py"):
        exec(blocks[name], space)
    space["test_length_ratio"]()
    monkeypatch.setattr(scorer.DQAScorer, "METRICS", space["METRICS"])
    monkeypatch.setenv("QILIN_DATA", "sample")
    results = evaluate("qilin_dqa_na", tmp_path, QilinBaseline("reference"))
    assert results["results"]["qilin_dqa_na"]["length_ratio,none"] == 1.0
    assert results["higher_is_better"]["qilin_dqa_na"]["length_ratio"] is None


def test_a_metric_of_ones_own(blocks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    folder = write(blocks, ["mine/mine.py", "mine/my_metrics.yaml"], tmp_path)
    model = ScriptedModel(lambda request: "一二三4" if request.doc["doc_key"] % 2 else "一二")
    results = evaluate("my_metrics", folder, model, log_samples=True)
    for sample in results["samples"]["my_metrics"]:
        odd = sample["doc"]["doc_key"] % 2
        assert (sample["has_digit"], sample["answer_share"]) == ((1.0, 1.0) if odd else (0.0, 0.5))
    assert results["higher_is_better"]["my_metrics"]["answer_share"] is False


def test_a_variant(blocks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    model = ScriptedModel("好")
    results = evaluate("my_variant", write(blocks, ["mine/my_variant.yaml"], tmp_path), model, limit=4)
    metadata = results["configs"]["my_variant"]["metadata"]
    assert "|note:100|" in metadata["signature"] and "|repeats:3|" in metadata["signature"]
    assert metadata["variance"]["repeats"] == 3
    assert len(model.seen) == 12 and all("一句话回答：" in request.args[0] for request in model.seen)
    assert all(request.args[1]["temperature"] == 0.7 for request in model.seen)


def test_other_data_and_a_retriever(blocks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qilin_tasks import cli
    from qilin_tasks.retrieval import pipeline

    space: dict[str, Any] = {"Retriever": pipeline.Retriever, "RETRIEVERS": dict(pipeline.RETRIEVERS)}
    for name in ("mine/make_data.py", "qilin_tasks/retrieval/character_overlap.py"):
        exec(blocks[name], space)
    notes = [("煮饺子", "水开下饺子"), ("养猫", "猫要喝水"), ("看海", "海边风大")]
    questions = [("饺子怎么煮", "水开了再下。", [0]), ("猫吃什么", "猫粮和水。", [1])]
    space["write"](tmp_path / "data", questions, notes)
    monkeypatch.setenv("QILIN_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(pipeline.RETRIEVERS, "character-overlap", space["RETRIEVERS"]["character-overlap"])
    run = tmp_path / "run.parquet"
    prepare = ["prepare", "--config", "dqa", "--retriever", "character-overlap", "--top-k", "1", "--out", str(run)]
    assert cli.main(prepare) == 0
    model = ScriptedModel("好")
    import lm_eval

    from qilin_tasks.harness.task_manager import task_manager

    manager = task_manager(["qilin_dqa_contexts"], metadata={"bertscore": "off", "contexts": str(run)})
    lm_eval.simple_evaluate(model=model, tasks=["qilin_dqa_contexts"], task_manager=manager, bootstrap_iters=0)
    shown = [[note["title"] for note in json.loads(json.dumps(request.doc["notes"]))] for request in model.seen]
    assert shown == [["煮饺子"], ["养猫"]]
