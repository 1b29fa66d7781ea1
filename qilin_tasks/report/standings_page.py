"""The top of a board on the page: one sentence, then its systems from the best on, with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.cost import costs_beside
from qilin_tasks.report.links import owner_mark, samples_link
from qilin_tasks.report.standings import Standing, sentence, standings
from qilin_tasks.report.tables import MODEL, chosen, column_name, number

WIDTH, HEIGHT = 400, 18


def standings_section(board: Board, analysis: Analysis) -> Iterator[str]:
    """The chosen column, then the others folded."""
    metric = board.headline()[0]
    first = chosen(board)
    yield _column(board, analysis, first, metric)
    for column in board.columns:
        if column is not first:
            yield f"<details><summary>{escape(column_name(column))}</summary>"
            yield _column(board, analysis, column, metric)
            yield "</details>"


def _column(board: Board, analysis: Analysis, column: Column, metric: str) -> str:
    rows = standings(board, analysis, column, metric)
    said = sentence(rows, analysis, column, metric)
    lead = f'<p class="lead">{escape(said)}</p>' if said else ""
    costs = {model: text for (task, model), text in costs_beside(board).items() if task == column.task}
    heads = ["system", "rank", "mean [95 %]", metric]
    head = "".join(f'<th class="text">{escape(name)}</th>' for name in heads)
    if costs:
        head += '<th class="text price">cost</th>'
    low, high = _range(rows)
    body = "".join(
        _row(row, column, metric, low=low, high=high, cost=costs.get(row.name, "–") if costs else "") for row in rows
    )
    return (
        f'<h3>{escape(metric)}, {escape(column_name(column))}</h3>{lead}<div class="scroll">'
        f'<table class="standings"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _range(rows: Sequence[Standing]) -> tuple[float, float]:
    ends = [0.0]
    for row in rows:
        ends += [row.cell.interval.low, row.cell.interval.high] if row.cell.interval else [row.cell.value]
    return min(ends), max(ends) or 1.0


def _row(row: Standing, column: Column, metric: str, *, low: float, high: float, cost: str) -> str:
    kinds = " ".join([*([] if row.kind == MODEL else [row.kind]), *(["tied"] if row.tied else [])])
    attribute = f' class="{kinds}"' if kinds else ""
    dagger = f'<span class="dagger" title="{escape(row.cell.problem)}"> †</span>' if row.cell.problem else ""
    interval = row.cell.interval
    limits = f" <small>[{number(interval.low)}, {number(interval.high)}]</small>" if interval else ""
    value = number(row.cell.value)
    if interval:
        value = samples_link(value, task=column.task, a=row.name, metric=metric)
    return (
        f'<tr{attribute}><td>{escape(row.name)}{owner_mark(row.cell.owner)}</td><td class="text">{row.ranks}</td>'
        f'<td class="text">{value}{dagger}{limits}</td>'
        f'<td class="text">{_bar(row, low=low, high=high)}</td>'
        + (f'<td class="text price">{escape(cost)}</td></tr>' if cost else "</tr>")
    )


def _bar(row: Standing, *, low: float, high: float) -> str:
    def x(value: float) -> float:
        return (value - low) / (high - low) * WIDTH

    start, end = sorted((x(0.0), x(row.cell.value)))
    whisker = ""
    if row.cell.interval is not None:
        left, right = x(row.cell.interval.low), x(row.cell.interval.high)
        whisker = f'<line class="whisker" x1="{left:.1f}" x2="{right:.1f}" y1="{HEIGHT / 2}" y2="{HEIGHT / 2}"/>'
    return (
        f'<svg class="standing" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{number(row.cell.value)}">'
        f'<rect class="{row.kind}" x="{start:.1f}" y="3" width="{end - start:.1f}" height="{HEIGHT - 6}"/>'
        f"{whisker}</svg>"
    )
