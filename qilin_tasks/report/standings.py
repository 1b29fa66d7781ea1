"""Who is ahead: a column's systems by one metric, with the ranks that the tests allow, and one sentence about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qilin_tasks.report.analysis import LEVEL, Analysis, PairRow
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.tables import MODEL, Cell, column_name, number, table


@dataclass(frozen=True)
class Standing:
    """One system; `best` to `worst` are the ranks that no test rules out, None for what takes no part in the tests.

    `tied` says that it can't be told from the model above it.
    """

    name: str
    kind: str
    cell: Cell
    best: int | None
    worst: int | None
    tied: bool

    @property
    def ranks(self) -> str:
        """`1`, `1–3`, or nothing."""
        if self.best is None:
            return ""
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


def standings(board: Board, analysis: Analysis, column: Column, metric: str) -> list[Standing]:
    """Models, baselines and published systems of a column, each from the best on."""
    place = board.columns.index(column)
    lower = board.higher_is_better[metric] is False
    cells = [(row.name, row.kind, cell) for row in table(board, analysis, metric) if (cell := row.cells[place])]
    ordered = sorted(cells, key=lambda one: one[2].value, reverse=not lower)
    tests = tests_of(analysis, column, metric)
    models = [name for name, kind, cell in ordered if kind == MODEL and not cell.problem]
    found = []
    for kind in dict.fromkeys(kind for _, kind, _ in cells):
        for name, its_kind, cell in ordered:
            if its_kind != kind:
                continue
            if name not in models or not tests:
                found.append(Standing(name, kind, cell, None, None, tied=False))
                continue
            others = [other for other in models if other != name]
            ahead = models[: models.index(name)]
            above = sum(other in ahead and differ(tests, name, other) for other in others)
            below = sum(other not in ahead and differ(tests, name, other) for other in others)
            tied = bool(ahead) and not differ(tests, name, ahead[-1])
            found.append(Standing(name, kind, cell, 1 + above, len(models) - below, tied))
    return found


def tests_of(analysis: Analysis, column: Column, metric: str) -> dict[frozenset[str], PairRow]:
    return {
        frozenset((row.first, row.second)): row
        for row in analysis.pairs
        if row.metric == metric and row.condition == column_name(column)
    }


def differ(tests: dict[frozenset[str], PairRow], first: str, second: str) -> bool:
    """Whether the test tells two models apart (Holm-corrected, 5 %); False where they were not tested."""
    row = tests.get(frozenset((first, second)))
    return row is not None and row.test.p_holm < LEVEL


def sentence(rows: Sequence[Standing], analysis: Analysis, column: Column, metric: str) -> str:
    """What one may say of the first models, in plain words; "" where there is no model."""
    models = [row for row in rows if row.best is not None]
    if len(models) < 2:
        alone = [row for row in rows if row.kind == MODEL]
        return f"{alone[0].name} has nothing to be compared with." if len(alone) == 1 else ""
    tests = tests_of(analysis, column, metric)
    first, second, *rest = (row.name for row in models)
    row = tests[frozenset((first, second))]
    if not differ(tests, first, second):
        level = [name for name in (second, *rest) if not differ(tests, first, name)]
        return f"{first} is in front, but can't be told from {_listed(level)}."
    d = row.test.difference
    value, low, high = (d.value, d.low, d.high) if row.first == first else (-d.value, -d.high, -d.low)
    if value >= 0:
        said = f"{first} is ahead of {second} by {number(value)} [{number(low)}, {number(high)}]"
    else:
        said = f"{first} is better than {second}: lower by {number(-value)} [{number(-high)}, {number(-low)}]"
    level = [name for name in rest if not differ(tests, second, name)]
    return f"{said}; {_listed(level)} can't be told from {second}." if level else f"{said}."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
