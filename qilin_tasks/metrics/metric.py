"""One row of a metric table: the function over a batch, and all that is to be known of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

Batch = TypeVar("Batch")
#: One metric's table: names as the harness prints them, in that order.
Table = Mapping[str, "Metric[Batch]"]


@dataclass(frozen=True, kw_only=True)
class Metric(Generic[Batch]):
    """`score` maps a batch to one value a document, in `low` to `high` (None: unbounded).

    `higher_is_better` is None where no direction is better. `switch` names the setting that turns the metric off,
    `settings` those it reads (they may change when stored answers are scored again), `recipe` its part of the
    signature: a name and a function of the settings; metrics that share a recipe name it alike. A row with `of` takes
    that row's values, for the documents that `among` holds for; the others have none. Systems are compared by the
    first row and those that are `headline`.
    """

    about: str
    score: Callable[[Batch], Sequence[float]]
    higher_is_better: bool | None
    low: float = 0.0
    high: float | None = 1.0
    switch: str | None = None
    settings: tuple[str, ...] = ()
    recipe: tuple[str, Callable[[Any], str]] | None = None
    of: str | None = None
    among: Callable[[Batch], Sequence[bool]] | None = None
    headline: bool = False


def unavailable(table: Table[Any], settings: object) -> dict[str, str]:
    """The metrics that the settings switch off, each with the reason."""
    return {
        name: f"{metric.switch} is off"
        for name, metric in table.items()
        if metric.switch is not None and getattr(settings, metric.switch) == "off"
    }


def headlines(table: Table[Any]) -> list[str]:
    """What systems are compared by: the first row, then those that say so, in the table's order."""
    return list(dict.fromkeys([*list(table)[:1], *(name for name, metric in table.items() if metric.headline)]))


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


def with_share(
    table: Table[Batch], suffix: str, among: Callable[[Batch], Sequence[bool]], *, about: str
) -> Table[Batch]:
    """The table, and behind it every row once more as `name_suffix`: the same values over the documents of `among`."""
    return {
        **table,
        **{
            f"{name}_{suffix}": replace(metric, about=f"{metric.about}; {about}", of=name, among=among, headline=False)
            for name, metric in table.items()
        },
    }


def score_table(table: Table[Batch], batch: Batch, *, off: Container[str]) -> dict[str, Sequence[float | None]]:
    """One column a metric, but for those that are `off`; None where a document is not among a row's documents."""
    columns: dict[str, Sequence[float | None]] = {}
    for name, metric in table.items():
        if name in off:
            continue
        if metric.of is None or metric.among is None:
            columns[name] = metric.score(batch)
        else:
            whole = zip(columns[metric.of], metric.among(batch), strict=True)
            columns[name] = [value if counted else None for value, counted in whole]
    return columns


def rows(columns: Mapping[str, Sequence[float | None]]) -> list[dict[str, float]]:
    """One dict a document from one column a metric, without what is None. ValueError where a column is longer."""
    return [
        {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        for values in zip(*columns.values(), strict=True)
    ]
