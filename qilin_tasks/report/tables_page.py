"""The tables on the page; every number that was computed here is a link to the samples behind it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from qilin_tasks.report.analysis import Analysis, LiftRow, PairRow
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.links import owner_mark, samples_link
from qilin_tasks.report.tables import (
    MODEL,
    Cell,
    TableRow,
    column_name,
    direction,
    number,
    p_value,
    share,
    spread,
    table,
)

#: A longer table of lifts stays folded until it is asked for: with forty models it has hundreds of rows.
UNFOLDED = 24


def metric_table(board: Board, analysis: Analysis, metric: str) -> str:
    """One metric: systems by conditions."""
    better = direction(board.higher_is_better[metric])
    rows = []
    for row in table(board, analysis, metric):
        kind = "" if row.kind == MODEL else f' class="{row.kind}"'
        cells = (_cell(cell, row, column, metric) for cell, column in zip(row.cells, board.columns, strict=True))
        rows.append(f"<tr{kind}><td>{escape(row.name)}{owner_mark(row.owner)}</td>{''.join(cells)}</tr>")
    heads = ["system", *(column_name(column) for column in board.columns)]
    return f'<h3>{escape(metric)} <span class="soft">{better}</span></h3>' + _table(heads, rows)


def pairs_table(board: Board, pairs: Sequence[PairRow]) -> str:
    """Every test of two models; the difference leads to the documents where they differ most."""
    tasks = _tasks(board)
    rows = []
    for row in pairs:
        link = samples_link(
            spread(row.test.difference),
            task=tasks[row.condition],
            a=row.first,
            b=row.second,
            metric=row.metric,
            largest_first=True,
        )
        rows.append(
            f"<tr><td>{escape(row.first)} − {escape(row.second)}</td>"
            f'<td class="text">{escape(row.condition)}</td><td class="text">{escape(row.metric)}</td>'
            f'<td data-value="{row.test.difference.value!r}">{link}</td>'
            f'<td data-value="{row.test.p_holm!r}">{p_value(row.test.p_holm)}</td></tr>'
        )
    heads = ["pair", "condition", "metric", "difference", "p (Holm)"]
    return "<details><summary>Models against each other</summary>" + _table(heads, rows, texts=3) + "</details>"


def lifts_table(board: Board, lifts: Sequence[LiftRow]) -> str:
    """Each model's conditions against no context."""
    tasks = _tasks(board)
    rows = []
    for row in lifts:
        closed = f' data-value="{row.share.value!r}"' if row.share else ""
        text = spread(row.lift.difference)
        link = samples_link(text, task=tasks[row.condition], a=row.model, metric=row.metric)
        rows.append(
            f'<tr><td>{escape(row.model)}</td><td class="text">{escape(row.condition)}</td>'
            f'<td class="text">{escape(row.metric)}</td>'
            f'<td data-value="{row.lift.difference.value!r}">{link}</td>'
            f'<td data-value="{row.lift.p_holm!r}">{p_value(row.lift.p_holm)}</td>'
            f"<td{closed}>{share(row.share)}</td></tr>"
        )
    heads = ["model", "condition", "metric", "lift over no context", "p (Holm)", "share of the oracle gap"]
    title, found = (
        "Lift over no context, and share of the gap to the oracle that is closed",
        _table(heads, rows, texts=3),
    )
    if len(rows) > UNFOLDED:
        return f"<details><summary>{title}</summary>{found}</details>"
    return f"<h3>{title}</h3>{found}"


def _tasks(board: Board) -> dict[str, str]:
    return {column_name(column): column.task for column in board.columns}


def _table(heads: Sequence[str], rows: Sequence[str], *, texts: int = 1) -> str:
    cells = "".join(
        f'<th class="text">{escape(head)}</th>' if i < texts else f"<th>{escape(head)}</th>"
        for i, head in enumerate(heads)
    )
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: Cell | None, row: TableRow, column: Column, metric: str) -> str:
    if cell is None:
        return "<td>–</td>"
    start = f'<td data-value="{cell.value!r}" title="{escape(cell.signature)}">'
    if cell.interval is None:
        return f"{start}{number(cell.value)}</td>"
    i = cell.interval
    value = samples_link(f"{number(cell.value)} ± {number(i.se)}", task=column.task, a=row.name, metric=metric)
    letters = f"<sup>{escape(cell.letters)}</sup>" if cell.letters else ""
    dagger = f'<span class="dagger" title="{escape(cell.problem)}"> †</span>' if cell.problem else ""
    return f"{start}{value}{letters}{dagger}<small>[{number(i.low)}, {number(i.high)}] n={i.n}</small></td>"
