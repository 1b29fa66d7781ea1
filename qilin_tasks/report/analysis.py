"""The statistics of a board: intervals, pairwise tests, groups that can't be told apart, lift and share of the gap."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qilin_tasks.families import metric_rows
from qilin_tasks.report.collect import RUNS, Board, Row, aligned, common_keys
from qilin_tasks.results.stats import (
    UNBOUNDED,
    Floats,
    Interval,
    PairedTest,
    Range,
    compare_systems,
    holm,
    letter_groups,
    resampled_means,
    share_of_gap,
    smallest_p,
)

FLOOR, CEILING = "na", "oracle"
LEVEL = 0.05


@dataclass(frozen=True)
class PairRow:
    """Two models under one condition by one metric: first minus second."""

    condition: str
    metric: str
    first: str
    second: str
    test: PairedTest


@dataclass(frozen=True)
class LiftRow:
    """One model's condition against its own floor, and the share of its floor-to-ceiling gap that it closes."""

    model: str
    condition: str
    metric: str
    lift: PairedTest
    share: Interval | None


@dataclass(frozen=True)
class Analysis:
    """All numbers of a board; `intervals` by (task, model, metric), `groups` by (task, metric) and model."""

    intervals: dict[tuple[str, str, str], Interval]
    pairs: list[PairRow]
    groups: dict[tuple[str, str], dict[str, str]]
    lifts: list[LiftRow]
    documents: int
    clusters: int
    notes: list[str]


def analyse(board: Board, *, resamples: int, seed: int) -> Analysis:
    """Every statistic of a board; one set of resamples serves all pairs, so that everything in it is paired."""
    intervals = {}
    for column in board.columns:
        for row in column.rows:
            for metric, values in row.scores.values.items():
                if not np.isnan(values).all():
                    interval = row.scores.interval(metric, bounds=range_of(row, metric))
                    intervals[column.task, row.result.model, metric] = interval
    rows = [row for column in board.columns for row in column.compared]
    keys = common_keys(rows)
    notes = _notes(rows, len(keys))
    if not keys:
        return Analysis(intervals, [], {}, [], 0, 0, notes)
    stack = _Stack(board, keys)
    if stack.columns:
        stack.resample(resamples=resamples, seed=seed)
    pairs, groups = _model_pairs(board, stack, resamples=resamples, seed=seed)
    lifts = _lifts(board, stack, resamples=resamples, seed=seed)
    if pairs or lifts:
        notes += _small(stack.cluster_count, resamples=resamples)
    return Analysis(intervals, pairs, groups, lifts, len(keys), stack.cluster_count, notes)


def range_of(row: Row, metric: str) -> Range:
    """The range that the metric's table gives; open on both sides for metrics of other tools."""
    family = row.result.parts.get("family", "")
    if family == RUNS:
        # Measures of a ranking, all of them.
        return (0.0, 1.0)
    known = metric_rows(family).get(metric)
    return (known.low, known.high) if known is not None else UNBOUNDED


def _small(clusters: int, *, resamples: int) -> list[str]:
    """What to know where there are too few independent documents for the tests."""
    least = smallest_p(clusters, resamples=resamples)
    if least < LEVEL:
        return []
    said = f"the smallest p that any difference can have is {least:.3g}, so no pair can be told apart"
    return [f"{clusters} independent documents are too few for a test: {said}"]


def _notes(rows: Sequence[Row], common: int) -> list[str]:
    largest = max((len(row.scores.keys) for row in rows), default=0)
    if rows and not common:
        return ["the compared rows share no document: there are no paired statistics"]
    return (
        [f"paired statistics use the {common} documents that all compared rows share (the largest row has {largest})"]
        if common < largest
        else []
    )


class _Stack:
    """The compared rows' headline metrics as columns over the common documents."""

    def __init__(self, board: Board, keys: Sequence[int | str]) -> None:
        self.where: dict[tuple[str, str, str], int] = {}
        self.columns: list[Floats] = []
        self.bounds: list[Range] = []
        for column in board.columns:
            for row in column.compared:
                for metric in board.headline():
                    if metric not in row.scores.values:
                        continue
                    values = aligned(row, metric, keys)
                    if np.isfinite(values).all():
                        self.where[column.task, row.result.model, metric] = len(self.columns)
                        self.columns.append(values)
                        self.bounds.append(range_of(row, metric))
        self.clusters = self._clusters(board, keys)
        self.cluster_count = len(set(self.clusters)) if self.clusters else len(keys)
        self.matrix: Floats = np.stack(self.columns, axis=1) if self.columns else np.empty((len(keys), 0))
        self.means: Floats = np.empty((0, 0))

    @staticmethod
    def _clusters(board: Board, keys: Sequence[int | str]) -> list[Hashable] | None:
        for column in board.columns:
            for row in column.compared:
                if row.scores.clusters is not None:
                    by_key = dict(zip(row.scores.keys, row.scores.clusters, strict=True))
                    return [by_key[key] for key in keys]
        return None

    def resample(self, *, resamples: int, seed: int) -> None:
        self.means = resampled_means(self.matrix, resamples=resamples, seed=seed, clusters=self.clusters)

    def tests(self, pairs: Sequence[tuple[int, int]], *, resamples: int, seed: int) -> list[PairedTest]:
        """The tests of pairs of columns; only the columns that take part are flipped."""
        used = sorted({column for pair in pairs for column in pair})
        place = {column: i for i, column in enumerate(used)}
        found = compare_systems(
            self.matrix[:, used],
            resamples=resamples,
            seed=seed,
            clusters=self.clusters,
            pairs=[(place[a], place[b]) for a, b in pairs],
            means=self.means[:, used],
            bounds=[self.bounds[column] for column in used],
        )
        return [replace(test, first=a, second=b) for test, (a, b) in zip(found, pairs, strict=True)]


def _model_pairs(
    board: Board, stack: _Stack, *, resamples: int, seed: int
) -> tuple[list[PairRow], dict[tuple[str, str], dict[str, str]]]:
    """All pairs of language models in each column, Holm-corrected within (column, metric)."""
    wanted: list[tuple[int, int]] = []
    names: list[tuple[str, str, str, str, str]] = []
    for column in board.columns:
        for metric in board.headline():
            models = [
                row.result.model
                for row in column.compared
                if not row.result.is_baseline and (column.task, row.result.model, metric) in stack.where
            ]
            for i, first in enumerate(models):
                for second in models[i + 1 :]:
                    wanted.append((stack.where[column.task, first, metric], stack.where[column.task, second, metric]))
                    names.append((column.task, column.condition, metric, first, second))
    if not wanted:
        return [], {}
    tests = stack.tests(wanted, resamples=resamples, seed=seed)
    families: dict[tuple[str, str], list[int]] = {}
    for i, (task, _, metric, _, _) in enumerate(names):
        families.setdefault((task, metric), []).append(i)
    groups = {}
    for (task, metric), members in families.items():
        for i, adjusted in zip(members, holm([tests[i].p for i in members]), strict=True):
            tests[i] = replace(tests[i], p_holm=float(adjusted))
        models = list(dict.fromkeys(model for i in members for model in names[i][3:]))
        sign = 1 if board.higher_is_better[metric] else -1
        means = [sign * float(stack.matrix[:, stack.where[task, model, metric]].mean()) for model in models]
        different = [(models.index(names[i][3]), models.index(names[i][4])) for i in members if tests[i].p_holm < LEVEL]
        groups[task, metric] = dict(zip(models, letter_groups(means, different), strict=True))
    rows = [
        PairRow(condition or task, metric, first, second, test)
        for (task, condition, metric, first, second), test in zip(names, tests, strict=True)
    ]
    return rows, groups


def _lifts(board: Board, stack: _Stack, *, resamples: int, seed: int) -> list[LiftRow]:
    """Each model's conditions against its own floor, Holm-corrected within (model, metric)."""
    by_condition = {column.condition: column.task for column in board.columns}
    if FLOOR not in by_condition:
        return []
    rows: list[LiftRow] = []
    for model in board.models:
        for metric in board.headline():
            place = {
                condition: stack.where[task, model, metric]
                for condition, task in by_condition.items()
                if (task, model, metric) in stack.where
            }
            others = [condition for condition in place if condition != FLOOR]
            if FLOOR not in place or not others:
                continue
            tests = stack.tests([(place[c], place[FLOOR]) for c in others], resamples=resamples, seed=seed)
            # A share means something only where the ceiling is clearly above the floor, by the test as by the interval.
            above = CEILING in others and tests[others.index(CEILING)].p_holm < LEVEL
            for condition, test in zip(others, tests, strict=True):
                share = None
                if above and condition != CEILING:
                    chosen = [place[FLOOR], place[condition], place[CEILING]]
                    share = share_of_gap(stack.matrix[:, chosen], stack.means[:, chosen], clusters=stack.clusters)
                rows.append(LiftRow(model, condition, metric, test, share))
    return rows
