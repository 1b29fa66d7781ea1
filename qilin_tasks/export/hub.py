"""Hugging Face's `.eval_results/*.yaml` of a model's repository: https://huggingface.co/docs/hub/eval-results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from qilin_tasks.errors import SettingError
from qilin_tasks.export.exported import Exported


def entry(one: Exported, *, metric: str | None, dataset: str | None) -> dict[str, Any]:
    """One entry: the headline metric, or the one that is named. The signature stands in its notes.

    Raises SettingError for a metric that the task hasn't, and where the data set's id on the hub isn't known.
    """
    name = metric or one.metrics[0]
    if name not in one.metrics:
        raise SettingError(f"--metric {name!r}: {one.result.task} has {', '.join(one.metrics)}")
    if dataset is None and not one.on_hub:
        raise SettingError(
            f"{one.result.task}: its data set has no id on the hub that is known here; give it by --dataset OWNER/NAME"
        )
    return {
        "dataset": {"id": dataset or one.dataset, "task_id": one.result.task},
        "value": one.interval(name).value,
        "date": one.date.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "notes": f"{name}, n={one.interval(name).n}, {one.signature}",
    }


def content(results: Sequence[Exported], *, metric: str | None, dataset: str | None) -> str:
    """The YAML file of one model."""
    rows = [entry(one, metric=metric, dataset=dataset) for one in results]
    return str(yaml.safe_dump(rows, allow_unicode=True, sort_keys=False, width=10_000))
