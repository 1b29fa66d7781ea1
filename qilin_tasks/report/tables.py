"""A board's numbers as rows of a table, which Markdown, CSV and the page all show."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from qilin_tasks import families
from qilin_tasks.report.analysis import FLOOR, Analysis, LiftRow
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.results.published import Published, published_for
from qilin_tasks.results.stats import Interval

MODEL, BASELINE, PUBLISHED = "model", "baseline", "published"
#: What a pair's p value is shown as, from the smallest limit on.
_TINY = 0.0001
#: Rows without a click or an answer are left out here too, so a few documents less are no other set.
ENOUGH = 0.9


@dataclass(frozen=True)
class Cell:
    """One number; `interval` is None for published ones, `problem` says why it isn't compared."""

    value: float
    interval: Interval | None
    letters: str
    signature: str
    problem: str
    owner: str = ""


@dataclass(frozen=True)
class TableRow:
    """A system's cells, one for each column of the board (None where it has no number)."""

    name: str
    kind: str
    cells: list[Cell | None]

    @property
    def owner(self) -> str:
        """The folders of a merged report that the row is from; "" for one folder."""
        return ", ".join(dict.fromkeys(cell.owner for cell in self.cells if cell is not None and cell.owner))


def escaped(text: str) -> str:
    """A name inside a Markdown table: nothing in it may act as markup."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~$&])", r"\\\1", text.replace("\r", " ").replace("\n", " "))


def chosen(board: Board) -> Column:
    """The column to open with: most models, then the first that shows notes."""
    return max(board.columns, key=lambda column: (len(column.compared), column.condition != FLOOR))


def best_first(board: Board, analysis: Analysis) -> list[str]:
    """The board's models in the order of its first standings, those without that number last, baselines after them.

    One order for all metrics and plots, so that a system is found at the same height in each.
    """
    task, metric = chosen(board).task, board.headline()[0]
    sign = 1 if board.higher_is_better[metric] is False else -1
    found = {model: analysis.intervals.get((task, model, metric)) for model in board.models}
    worth = {model: sign * interval.value for model, interval in found.items() if interval is not None}
    return sorted(board.models, key=lambda model: (model in board.baselines, worth.get(model, math.inf)))


def lifts_best_first(board: Board, analysis: Analysis) -> list[LiftRow]:
    """The lifts of each model, the models in the order of the tables."""
    order = best_first(board, analysis)
    return sorted(analysis.lifts, key=lambda lift: order.index(lift.model))


def column_name(column: Column) -> str:
    """The condition where there is one, else the task."""
    return column.condition or column.task


def config_of(column: Column) -> str:
    """The config of the published tables that a column's task belongs to; "" for none."""
    results = [row.result for row in column.rows]
    family = results[0].parts.get("family", "")
    if family == "dqa":
        return "dqa"
    return str(results[0].metadata.get("config") or "") if family.startswith("qilin-") else ""


def published_rows(board: Board, metric: str) -> list[TableRow]:
    """The paper's rows for a metric, aligned with the board's columns."""
    by_column: list[dict[str, Published]] = []
    for column in board.columns:
        found = _published(column)
        by_column.append({row.system: row for row in found if metric in row.values})
    systems = list(dict.fromkeys(system for found in by_column for system in found))
    return [
        TableRow(
            system,
            PUBLISHED,
            [
                Cell(found[system].values[metric], None, "", f"Table {found[system].table}: {found[system].note}", "")
                if system in found
                else None
                for found in by_column
            ],
        )
        for system in systems
    ]


def notes(board: Board) -> list[str]:
    """What the numbers of a board's families are not, and what its published rows are, once a table of the paper."""
    rows = [row for column in board.columns for row in _published(column)]
    published = dict.fromkeys(f"Published: {row.source}, Table {row.table}: {row.note}." for row in rows)
    return [*family_notes(board), *published]


def family_notes(board: Board) -> list[str]:
    """What a reader must know of the numbers of the board's families."""
    return families.notes(row.result.parts.get("family", "") for column in board.columns for row in column.rows)


def warnings(board: Board, analysis: Analysis) -> list[str]:
    """What a reader must know before the numbers; numbers beside published ones must be of a set of that size."""
    found = [*board.warnings, *analysis.notes]
    fewer: dict[tuple[int, int], list[str]] = {}
    for column in board.columns:
        theirs = {row.documents for row in _published(column)}
        ours = {row.result.n for row in column.rows}
        if theirs and max(ours) < ENOUGH * min(theirs):
            fewer.setdefault((max(ours), min(theirs)), []).append(column.task)
    found += [
        f"{', '.join(tasks)}: {ours:,} documents here (a sample, or --limit), {theirs:,} in the data that the "
        "published rows are about: not the same set"
        for (ours, theirs), tasks in fewer.items()
    ]
    return found


def _published(column: Column) -> tuple[Published, ...]:
    return published_for(config_of(column), column.condition or None)


def table(board: Board, analysis: Analysis, metric: str) -> list[TableRow]:
    """Models, then baselines, then published systems; `best_first` says in which order."""
    rows = []
    for model in best_first(board, analysis):
        cells: list[Cell | None] = []
        for column in board.columns:
            row = board.row(column, model)
            interval = analysis.intervals.get((column.task, model, metric))
            if row is None or interval is None:
                cells.append(None)
                continue
            letters = analysis.groups.get((column.task, metric), {}).get(model, "")
            signature = row.result.signature or "none"
            cells.append(Cell(interval.value, interval, letters, signature, row.problem, row.result.owner))
        if any(cell is not None for cell in cells):
            rows.append(TableRow(model, BASELINE if model in board.baselines else MODEL, cells))
    return rows + published_rows(board, metric)


def number(value: float) -> str:
    """Four decimals for scores, fewer for counts."""
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"


def direction(higher_is_better: bool | None) -> str:
    """In words, for a heading."""
    if higher_is_better is None:
        return "no direction is better"
    return "higher is better" if higher_is_better else "lower is better"


def p_value(p: float) -> str:
    """`0.0312`, `< 0.0001`."""
    return f"< {_TINY}" if p < _TINY else f"{p:.4f}"


def share(interval: Interval | None) -> str:
    """A share of the gap with its interval, in per cent."""
    if interval is None:
        return "–"
    return f"{100 * interval.value:.0f} % [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def spread(interval: Interval) -> str:
    """`0.3312 [0.3250, 0.3374]`, with a sign where it is a difference."""
    return f"{number(interval.value)} [{number(interval.low)}, {number(interval.high)}]"


def method(*, resamples: int, seed: int) -> str:
    """How the numbers were made, in one paragraph."""
    return (
        "Mean ± standard error and 95 % interval over documents (Student's t; clustered where documents share a "
        f"paragraph). Pairs: paired bootstrap interval and paired permutation p, {resamples:,} resamples, seed {seed}, "
        "Holm-corrected within a condition and metric; models that share a letter can't be told apart at 5 %. "
        "Baselines and published rows take no part in the tests. Published rows were not computed here. † marks a "
        "number whose signature differs from the others of its column: it is not compared."
    )


def signatures(board: Board) -> dict[str, list[str]]:
    """Each distinct signature with the task and models that carry it."""
    found: dict[str, list[str]] = {}
    for column in board.columns:
        for row in column.rows:
            found.setdefault(row.result.signature or "no signature", []).append(f"{row.result.model} ({column.task})")
    return found


RESULT_FIELDS = (
    "board", "task", "condition", "system", "kind", "metric", "higher_is_better", "n", "clusters", "mean", "se", "low",
    "high", "letters", "compared", "signature", "owner",
)  # fmt: skip
PAIR_FIELDS = (
    "board", "kind", "condition", "metric", "first", "second", "difference", "se", "low", "high", "p", "p_holm",
    "gap_share", "gap_low", "gap_high",
)  # fmt: skip


def results_csv(boards: list[tuple[Board, Analysis]]) -> str:
    """Every number, one a line."""
    return _csv(RESULT_FIELDS, (line for board, analysis in boards for line in _result_lines(board, analysis)))


def _result_lines(board: Board, analysis: Analysis) -> Iterator[list[object]]:
    for metric in board.metrics:
        for row in table(board, analysis, metric):
            for column, cell in zip(board.columns, row.cells, strict=True):
                if cell is None:
                    continue
                i = cell.interval
                numbers = [i.n, i.clusters, i.value, i.se, i.low, i.high] if i else ["", "", cell.value, "", "", ""]
                yield [
                    board.name, column.task, column.condition, row.name, row.kind, metric,
                    board.higher_is_better[metric], *numbers, cell.letters,
                    row.kind != PUBLISHED and not cell.problem, cell.signature, cell.owner,
                ]  # fmt: skip


def pairs_csv(boards: list[tuple[Board, Analysis]]) -> str:
    """Every test, one a line: models against each other, and conditions against no context."""
    lines: list[list[object]] = []
    for board, analysis in boards:
        for pair in analysis.pairs:
            d = pair.test.difference
            start = [board.name, "models", pair.condition, pair.metric, pair.first, pair.second]
            lines.append([*start, d.value, d.se, d.low, d.high, pair.test.p, pair.test.p_holm, "", "", ""])
        for lift in analysis.lifts:
            d, gap = lift.lift.difference, lift.share
            start = [board.name, "lift", lift.condition, lift.metric, lift.model, lift.model]
            ends: list[object] = [gap.value, gap.low, gap.high] if gap else ["", "", ""]
            lines.append([*start, d.value, d.se, d.low, d.high, lift.lift.p, lift.lift.p_holm, *ends])
    return _csv(PAIR_FIELDS, iter(lines))


def _csv(fields: tuple[str, ...], lines: Iterator[list[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    for line in lines:
        # A spreadsheet runs what begins like a formula.
        writer.writerow([f"'{v}" if isinstance(v, str) and v[:1] in "=+-@\t\r" and v else v for v in line])
    return text.getvalue()
