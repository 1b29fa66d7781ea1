"""The metric tables are the one place that knows the metrics: YAML, READMEs and results follow them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.evaluation import defaults, evaluate

from qilin_tasks import tasks_folder
from qilin_tasks.families import FAMILIES, scoring_names
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.metrics.metric import Metric, headlines, recipes, scoring_settings

README = {
    "dqa": "qilin/README.md",
    "custom_dqa": "qilin/README.md",
    "dqa_cite": "qilin/EVIDENCE.md",
    "dqa_noevidence": "qilin/EVIDENCE.md",
    "dqa_grid": "qilin/EVIDENCE.md",
    "qilin-listwise": "qilin/RANKING.md",
    "qilin-pointwise": "qilin/RANKING.md",
    "qilin-vision": "qilin/RANKING.md",
    "qilin-vision-pointwise": "qilin/RANKING.md",
    "reqa": "reqa/README.md",
    "reqa_likelihood": "reqa/README.md",
    "reqa_generate": "reqa/README.md",
    "reqa_reader": "reqa/README.md",
}
HEADLINES = {
    "dqa": "rouge_l",
    "custom_dqa": "rouge_l",
    "dqa_cite": "cite_f1",
    "dqa_noevidence": "refusal_f1",
    "dqa_grid": "rouge_l",
    "qilin-listwise": "mrr@10",
    "qilin-pointwise": "mrr@10",
    "qilin-vision": "mrr@10",
    "qilin-vision-pointwise": "mrr@10",
    "reqa": "mrr",
    "reqa_likelihood": "mrr",
    "reqa_generate": "mrr",
    "reqa_reader": "em",
}
#: A task of each family on the samples, with a strategy that answers it.
TASKS = {
    "dqa": ("qilin_dqa_bm25", "lead"),
    "dqa_cite": ("qilin_dqa_cite", "cite_random"),
    "dqa_noevidence": ("qilin_dqa_noevidence", "always_refuse"),
    "dqa_grid": ("qilin_dqa_grid_n5_d80_first", "lead"),
    "qilin-listwise": ("qilin_search_listwise", "random"),
    "qilin-pointwise": ("qilin_search_pointwise", "random"),
    "reqa": ("reqa_xquad_zh", "random"),
    "reqa_likelihood": ("reqa_xquad_zh_likelihood", "random"),
    "reqa_generate": ("reqa_xquad_zh_generate", "random"),
    "reqa_reader": ("reqa_xquad_zh_reader_bm25", "first_stage"),
}


@cache
def yaml_files() -> list[tuple[Path, dict[str, Any]]]:
    return [
        (path, yaml.safe_load(path.read_text(encoding="utf-8").replace("!function ", "")))
        for path in sorted(tasks_folder().rglob("*"))
        if path.suffix == ".yaml" or path.name.endswith("_yaml")
    ]


def table_of(task: str) -> dict[str, Metric[Any]]:
    """The metric table of a task, by the family that its YAML or its base names."""
    files = dict(yaml_files())
    for path, content in files.items():
        if content.get("task") == task:
            base = files.get(path.parent / content.get("include", ""), {})
            family = {**(base.get("dataset_kwargs") or {}), **(content.get("metadata") or {})}["family"]
            return dict(FAMILIES[family].scorer.METRICS)
    raise AssertionError(f"no file of the task {task}")


def leaves(name: str) -> Iterator[str]:
    for _, content in yaml_files():
        if content.get("group") == name:
            for member in content["task"]:
                yield from leaves(member)
            return
    yield name


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_first_row_is_the_headline(family: str) -> None:
    assert next(iter(FAMILIES[family].scorer.METRICS)) == HEADLINES[family]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_metric_is_explained_in_the_readme(family: str) -> None:
    text = (tasks_folder() / README[family]).read_text(encoding="utf-8")
    if family.startswith("dqa_"):
        text += (tasks_folder() / README["dqa"]).read_text(encoding="utf-8")
    named = set(re.findall(r"`([^`\s]+)`", text))
    for name in FAMILIES[family].scorer.METRICS:
        stem = name.removesuffix("_repaired").removesuffix("_engaged")
        pattern = re.sub(r"@\d+$", "@k", stem)
        assert {name, stem, pattern} & named, f"{README[family]} does not name {name}"


def test_groups_average_metrics_that_their_tasks_have() -> None:
    groups = [content for _, content in yaml_files() if content.get("aggregate_metric_list")]
    assert groups
    for group in groups:
        for entry in group["aggregate_metric_list"]:
            for task in leaves(group["group"]):
                assert entry["metric"] in table_of(task), (group["group"], task, entry["metric"])


def test_no_yaml_repeats_the_table() -> None:
    assert [path.name for path, content in yaml_files() if content.get("metric_list")] == []


@pytest.mark.parametrize("family", sorted(TASKS))
def test_values_lie_in_the_range_of_their_row(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("REQA_DATA", "sample")
    task, strategy = TASKS[family]
    results = evaluate([task], QilinBaseline(strategy), metadata={"meteor": "off"}, log_samples=True)
    table = FAMILIES[family].scorer.METRICS
    shown = results["samples"][task][0]["metrics"]
    all_shown = [name for name in table if table[name].switch not in ("bertscore", "meteor")]
    assert shown == all_shown
    for sample in results["samples"][task]:
        # A document that is not in a metric's share has no value of it.
        assert sample["metrics"] == [name for name in all_shown if table[name].of is None or sample["doc"]["engaged"]]
        for name in sample["metrics"]:
            row = table[name]
            assert row.low <= sample[name] and (row.high is None or sample[name] <= row.high + 1e-12), (
                name,
                sample[name],
            )
    assert results["higher_is_better"][task] == {name: table[name].higher_is_better for name in shown}


def test_scoring_settings_and_recipes_come_from_the_rows() -> None:
    dqa = FAMILIES["dqa"]
    assert scoring_settings(dqa.scorer.METRICS) == (
        "bertscore",
        "bertscore_model",
        "bertscore_layer",
        "bertscore_device",
        "bertscore_batch_size",
    )
    assert {"meteor", "meteor_download", "matcher"} <= set(scoring_names())
    settings = dqa.settings.from_metadata({**defaults("qilin/_dqa_yaml"), "context": "na", "bertscore": "off"})
    parts = recipes(dqa.scorer.METRICS, settings)
    assert list(parts)[:3] == ["rougeL", "rougeL_jieba", "bertscore"] and parts["bertscore"] == "off"


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_table_says_what_systems_are_compared_by(name: str) -> None:
    table = FAMILIES[name].scorer.METRICS
    chosen = headlines(table)
    assert chosen[0] == next(iter(table))
    assert {"rouge_l", "mrr@10", "mrr"} & set(chosen), "what the papers compare by is a headline"
    assert all(table[metric].higher_is_better is not None for metric in chosen)
    assert not [metric for metric in chosen if metric.endswith(("_repaired", "_engaged"))]
    assert len(chosen) <= 4
