"""One row of a metric table: the function over a batch, and all that is to be known of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Batch = TypeVar("Batch")
#: One metric's table: names as the harness prints them, in that order; the first is the headline.
Table = Mapping[str, "Metric[Batch]"]


@dataclass(frozen=True, kw_only=True)
class Metric(Generic[Batch]):
    """`score` maps a batch to one value a document, in `low` to `high` (None: unbounded).

    `higher_is_better` is None where no direction is better. `switch` names the setting that turns the metric off,
    `settings` those it reads (they may change when stored answers are scored again), `recipe` its part of the
    signature: a name and a function of the settings; metrics that share a recipe name it alike.
    """

    about: str
    score: Callable[[Batch], Sequence[float]]
    higher_is_better: bool | None
    low: float = 0.0
    high: float | None = 1.0
    switch: str | None = None
    settings: tuple[str, ...] = ()
    recipe: tuple[str, Callable[[Any], str]] | None = None


def unavailable(table: Table[Any], settings: object) -> dict[str, str]:
    """The metrics that the settings switch off, each with the reason."""
    return {
        name: f"{metric.switch} is off"
        for name, metric in table.items()
        if metric.switch is not None and getattr(settings, metric.switch) == "off"
    }


def recipes(table: Table[Any], settings: object) -> dict[str, str]:
    """The signature's parts of all metrics, in the table's order; `off` for those that are switched off."""
    parts: dict[str, str] = {}
    off = unavailable(table, settings)
    for name, metric in table.items():
        if metric.recipe is not None and metric.recipe[0] not in parts:
            parts[metric.recipe[0]] = "off" if name in off else metric.recipe[1](settings)
    return parts


def scoring_settings(table: Table[Any]) -> tuple[str, ...]:
    """Every setting that only scoring reads, each once."""
    names = (name for metric in table.values() for name in (metric.switch, *metric.settings) if name)
    return tuple(dict.fromkeys(names))


def rows(columns: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """One dict a document from one column a metric. ValueError where a column has another length."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
