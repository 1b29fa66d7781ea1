"""The numbers that the Qilin paper prints (Tables 10 and 11), as data with their source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

CONFIGS = ("search_test", "recommendation_test", "dqa")
CONDITIONS = ("na", "bm25", "bert", "oracle")


@dataclass(frozen=True)
class Published:
    """One system in one table. `condition` is DQA's (na, bm25, bert, oracle), None for rankings; `values` by metric.

    `documents` is how many requests the table is over (Table 10), or how many answers the release holds (Table 11,
    whose number the paper doesn't print).
    """

    table: int
    config: str
    condition: str | None
    system: str
    values: Mapping[str, float]
    documents: int
    note: str
    source: str


@lru_cache(maxsize=1)
def published() -> tuple[Published, ...]:
    """Every published row: Table 10 by config and system, Table 11 by system and condition, metrics named as ours."""
    data = json.loads(files("qilin_tasks").joinpath("data").joinpath("published.json").read_text(encoding="utf-8"))
    merged: dict[tuple[Any, ...], dict[str, float]] = {}
    for table in data["tables"]:
        for system, values in table["rows"].items():
            for name, value in zip(table["metrics"], values, strict=True):
                metric, condition = name, None
                if table["config"] == "dqa":
                    metric, _, condition = name.partition("@")
                key = (table["table"], table["config"], condition, system)
                merged.setdefault(key, {})[metric] = float(value)
    about = {table["config"]: (table["documents"], table["note"]) for table in data["tables"]}
    return tuple(
        Published(number, config, condition, system, values, *about[config], data["source"])
        for (number, config, condition, system), values in merged.items()
    )


def published_for(config: str, condition: str | None = None) -> tuple[Published, ...]:
    """The published rows of one config (and, for `dqa`, one condition), in the paper's order."""
    return tuple(row for row in published() if row.config == config and row.condition == condition)
