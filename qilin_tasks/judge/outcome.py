"""A judgement's rows: means with intervals, corrected by people's labels where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from qilin_tasks.errors import SettingError
from qilin_tasks.judge.checks import Check
from qilin_tasks.judge.corrected import corrected_mean
from qilin_tasks.judge.judged import Judged
from qilin_tasks.judge.labels import Label, Place, mean_scores
from qilin_tasks.results.stats import Interval, mean_interval

FORMAT = 1
RANGE = (0.0, 1.0)


class Measured(TypedDict):
    """A mean with its 95 % interval over `n` answers; the ends are None where one answer says nothing of the spread."""

    value: float
    low: float | None
    high: float | None
    n: int


class Row(TypedDict):
    """A model on a task, or two of them: `scored` of `answers` could be read, `labels` have people's labels.

    `corrected` is the mean that people would give, by the judge's scores and their labels; `people` the labels' own.
    """

    task: str
    models: list[str]
    answers: int
    scored: int
    values: dict[str, Measured]
    labels: int
    corrected: Measured | None
    people: Measured | None


class Judgement(TypedDict):
    """What `qilin-tasks judge` found; `bad` names the checks that failed."""

    format: int
    mode: str
    signature: str
    judge: str
    main: str
    documents: int
    cut: int
    rows: list[Row]
    checks: list[Check]
    bad: list[str]


def rows_of(judged: Sequence[Judged], labels: Sequence[Label], *, main: str) -> list[Row]:
    """One row a task and model (or pair of models), in the order of the judged."""
    groups: dict[tuple[str, tuple[str, ...]], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.task, one.models), []).append(one)
    people = mean_scores(labels)
    return [_row(task, models, group, people, main=main) for (task, models), group in groups.items()]


def _row(
    task: str,
    models: tuple[str, ...],
    group: Sequence[Judged],
    people: Mapping[Place, float],
    *,
    main: str,
) -> Row:
    names = list(dict.fromkeys(name for one in group for values in one.values if values for name in values))
    measured = {}
    for name in names:
        known = [(value, one.cluster) for one in group if (value := one.value(name)) is not None]
        interval = mean_interval(
            [value for value, _ in known], clusters=[cluster for _, cluster in known], bounds=RANGE
        )
        measured[name] = _measured(interval)
    read = [(one, value) for one in group if (value := one.value(main)) is not None]
    with_label = [(one, value) for one, value in read if one.place in people]
    rest = [(one, value) for one, value in read if one.place not in people]
    labels = [people[one.place] for one, _ in with_label]
    corrected = own = None
    if labels:
        clusters = [one.cluster for one, _ in with_label]
        own = _measured(mean_interval(labels, clusters=clusters, bounds=RANGE))
        try:
            corrected = _measured(
                corrected_mean(
                    [value for _, value in rest],
                    labelled_judged=[value for _, value in with_label],
                    labels=labels,
                    clusters=[one.cluster for one, _ in rest],
                    labelled_clusters=clusters,
                    bounds=RANGE,
                )
            )
        except SettingError:
            # Too few of either kind for a correction: the table shows a dash.
            corrected = None
    return {
        "task": task,
        "models": list(models),
        "answers": len(group),
        "scored": len(read),
        "values": measured,
        "labels": len(labels),
        "corrected": corrected,
        "people": own,
    }


def _measured(interval: Interval) -> Measured:
    spread = interval.clusters > 1
    low, high = (interval.low, interval.high) if spread else (None, None)
    return {"value": interval.value, "low": low, "high": high, "n": interval.n}
