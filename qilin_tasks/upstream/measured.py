"""What was measured on a machine without a GPU, as data with its command, and the report's tables made from it.

`python -m qilin_tasks.upstream.measured RESULTS…` prints the JSON of the harness's results files below those folders.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from qilin_tasks.results.published import published
from qilin_tasks.results.reader import TaskResult, read_results

PACKAGES = ("lm_eval", "transformers", "torch", "datasets", "rapidfuzz", "jieba")
_KEPT = (
    "rouge_l",
    "rouge_l_jieba",
    "mrr",
    "mrr@10",
    "mrr@100",
    "map@10",
    "map@100",
    "r@1",
    "r@10",
    "valid_rate",
    "empty_rate",
)
CONFIGS = {"qilin_search_": "search_test", "qilin_recommendation_": "recommendation_test", "qilin_dqa_": "dqa"}


@dataclass(frozen=True)
class Measured:
    """Values by system, task and metric, documents `n` by system and task; `date`, `versions`, `commands` say how."""

    date: str
    versions: Mapping[str, str]
    commands: Mapping[str, str]
    n: Mapping[str, Mapping[str, int]]
    values: Mapping[str, Mapping[str, Mapping[str, float]]]


@lru_cache(maxsize=1)
def measured() -> Measured:
    """The measurement that this version carries."""
    text = files("qilin_tasks.upstream").joinpath("measured.json").read_text(encoding="utf-8")
    return Measured(**json.loads(text))


def read_all(folders: Iterable[Path]) -> list[TaskResult]:
    """Every task of every results file below the folders: the baselines are one model with several strategies."""
    paths = [path for folder in folders for path in sorted(folder.rglob("results_*.json"))]
    return [result for path in paths for result in read_results(path)]


def collect(results: Sequence[TaskResult], commands: Mapping[str, str]) -> dict[str, Any]:
    """The JSON of `measured.json`, baselines first; `commands` by family and system."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    n: dict[str, dict[str, int]] = {}
    for result in sorted(results, key=lambda item: (not item.is_baseline, item.model, item.task)):
        kept = {name: round(value, 4) for name, value in result.values.items() if name in _KEPT}
        values.setdefault(_system(result), {})[result.task] = kept
        n.setdefault(_system(result), {})[result.task] = result.n
    return {
        "date": datetime.date.fromtimestamp(max(result.date for result in results)).isoformat(),
        "versions": {"qilin-tasks": version("qilin-tasks"), **{name: version(name) for name in PACKAGES}},
        "commands": dict(commands),
        "n": n,
        "values": values,
    }


def _system(result: TaskResult) -> str:
    if result.is_baseline:
        arguments = result.model_args if isinstance(result.model_args, Mapping) else {}
        return str(arguments.get("strategy") or result.model)
    return Path(result.model).name


def report_table(tasks: Sequence[str], metrics: Sequence[str]) -> str:
    """A row for each metric and task: measured systems, an empty column for models on a GPU, the published systems."""
    found = measured()
    systems = [s for s, by_task in found.values.items() if any(task in by_task for task in tasks)]
    papers = list(dict.fromkeys(row.system for task in tasks for row in _published(task)))
    head = ["metric", "task", *systems, "your model (GPU)", *(f"{paper} (paper)" for paper in papers)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for metric in metrics:
        for task in tasks:
            paper = {row.system: row.values.get(metric) for row in _published(task)}
            cells = [_number(found.values[s].get(task, {}).get(metric), n=found.n[s].get(task)) for s in systems]
            cells += ["", *(_number(paper.get(name)) for name in papers)]
            lines.append(f"| `{metric}` | `{task}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _published(task: str) -> list[Any]:
    config = next((config for prefix, config in CONFIGS.items() if task.startswith(prefix)), None)
    condition = task.removeprefix("qilin_dqa_") if config == "dqa" else None
    return [row for row in published() if row.config == config and row.condition == condition]


def _number(value: float | None, *, n: int | None = None) -> str:
    return "–" if value is None else f"{value:.3f}" + (f" ({n})" if n is not None else "")


if __name__ == "__main__":
    print(json.dumps(collect(read_all(map(Path, sys.argv[1:])), {}), ensure_ascii=False, indent=1))
