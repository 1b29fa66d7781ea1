"""The whole report as Markdown."""

from __future__ import annotations

from qilin_tasks.report.analysis import Analysis, LiftRow, PairRow
from qilin_tasks.report.collect import Board
from qilin_tasks.report.cost import cost_markdown
from qilin_tasks.report.standings import sentence, standings
from qilin_tasks.report.tables import (
    MODEL,
    Cell,
    chosen,
    column_name,
    direction,
    escaped,
    lifts_best_first,
    method,
    notes,
    number,
    p_value,
    share,
    signatures,
    spread,
    table,
    warnings,
)


def markdown(boards: list[tuple[Board, Analysis]], *, resamples: int, seed: int, title: str) -> str:
    """The whole report as Markdown."""
    lines = [f"# {escaped(title)}", "", method(resamples=resamples, seed=seed), ""]
    for board, analysis in boards:
        lines += [f"## {escaped(board.name)}", ""]
        lines += _markdown_standings(board, analysis)
        for text in warnings(board, analysis):
            lines += [f"> **Warning:** {escaped(text)}", ""]
        for text in notes(board):
            lines += [escaped(text), ""]
        for metric in board.metrics:
            lines += _markdown_table(board, analysis, metric)
        lines += _markdown_pairs(analysis.pairs)
        lines += _markdown_lifts(lifts_best_first(board, analysis))
        lines += cost_markdown(board)
        lines += ["### Signatures", ""]
        lines += [f"* `{signature}`: {escaped(', '.join(names))}" for signature, names in signatures(board).items()] + [
            ""
        ]
    return "\n".join(lines)


def _markdown_standings(board: Board, analysis: Analysis) -> list[str]:
    """One sentence a column: who is ahead; then the systems of the chosen one from the best on."""
    metric, first = board.headline()[0], chosen(board)
    said = [
        f"* {escaped(column_name(column))}: {escaped(text)}"
        for column in board.columns
        if (text := sentence(standings(board, analysis, column, metric), analysis, column, metric))
    ]
    lines = [f"By {escaped(metric)}:", "", *said, ""] if said else []
    lines += [f"| system | rank | {escaped(metric)}, {escaped(column_name(first))} |", "|---|---|---:|"]
    for row in standings(board, analysis, first, metric):
        mark = "" if row.kind == MODEL else f" ({row.kind})"
        mark += f", from {escaped(row.cell.owner)}" if row.cell.owner else ""
        lines.append(f"| {escaped(row.name)}{mark} | {row.ranks} | {_markdown_cell(row.cell)} |")
    return [*lines, ""]


def _markdown_table(board: Board, analysis: Analysis, metric: str) -> list[str]:
    arrow = direction(board.higher_is_better[metric])
    names = [column_name(column) for column in board.columns]
    lines = [
        f"### {escaped(metric)} ({arrow})",
        "",
        "| system | " + " | ".join(map(escaped, names)) + " |",
    ]
    lines.append("|---|" + "---:|" * len(names))
    for row in table(board, analysis, metric):
        mark = "" if row.kind == MODEL else f" ({row.kind})"
        mark += f", from {escaped(row.owner)}" if row.owner else ""
        lines.append(f"| {escaped(row.name)}{mark} | " + " | ".join(map(_markdown_cell, row.cells)) + " |")
    return [*lines, ""]


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    if cell.interval is None:
        return number(cell.value)
    letters = f" <sup>{cell.letters}</sup>" if cell.letters else ""
    dagger = " †" if cell.problem else ""
    interval = cell.interval
    limits = f"[{number(interval.low)}, {number(interval.high)}]"
    return f"{number(cell.value)} ± {number(interval.se)} {limits}{letters}{dagger}"


def _markdown_pairs(pairs: list[PairRow]) -> list[str]:
    if not pairs:
        return []
    lines = ["### Models against each other", "", "| condition | metric | pair | difference | p (Holm) |"]
    lines.append("|---|---|---|---:|---:|")
    for row in pairs:
        pair = f"{escaped(row.first)} − {escaped(row.second)}"
        lines.append(
            f"| {escaped(row.condition)} | {escaped(row.metric)} | {pair} | {spread(row.test.difference)} | "
            f"{p_value(row.test.p_holm)} |"
        )
    return [*lines, ""]


def _markdown_lifts(lifts: list[LiftRow]) -> list[str]:
    if not lifts:
        return []
    lines = ["### Lift over no context, and share of the gap to the oracle that is closed", ""]
    lines += ["| model | condition | metric | lift | p (Holm) | share of the gap |", "|---|---|---|---:|---:|---:|"]
    for row in lifts:
        names = " | ".join(map(escaped, (row.model, row.condition, row.metric)))
        numbers = f"{spread(row.lift.difference)} | {p_value(row.lift.p_holm)} | {share(row.share)}"
        lines.append(f"| {names} | {numbers} |")
    return [*lines, ""]
