"""Wins, ties and losses of every pair on the page, each a link to the documents that were won."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.links import samples_link
from qilin_tasks.report.matrix import Duel, duels
from qilin_tasks.report.tables import chosen, column_name

MARKS = {"ahead": " ▲", "behind": " ▽", "level": ""}


def matrix_section(board: Board, analysis: Analysis) -> Iterator[str]:
    """A matrix for each column, by the main metric; nothing where there is no pair."""
    metric = board.headline()[0]
    first = chosen(board)
    tables = [
        (column, found)
        for column in sorted(board.columns, key=lambda column: column is not first)
        if (found := duels(board, analysis, column, metric))
    ]
    if not tables:
        return
    yield (
        "<details><summary>Wins, ties, losses</summary>"
        f'<p class="soft">Documents on which the row’s system is better by {escape(metric)} than the column’s, as '
        "good, worse. ▲ ahead and ▽ behind by the test; without either, the two can’t be told apart, or were not "
        "tested.</p>"
    )
    for column, found in tables:
        yield _matrix(column, metric, found)
    yield "</details>"


def _matrix(column: Column, metric: str, found: dict[tuple[str, str], Duel]) -> str:
    names = list(dict.fromkeys(first for first, _ in found))
    # Numbers instead of names: forty columns have no room for more.
    heads = "".join(f'<th scope="col" title="{escape(name)}">{i}</th>' for i, name in enumerate(names, start=1))
    rows = "".join(
        f'<tr><th scope="row" class="text">{i} {escape(first)}</th>'
        + "".join(_cell(found.get((first, second)), column, metric) for second in names)
        + "</tr>"
        for i, first in enumerate(names, start=1)
    )
    return (
        f'<h4>{escape(column_name(column))}</h4><div class="scroll"><table class="matrix"><thead><tr>'
        f'<th class="text">system</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _cell(duel: Duel | None, column: Column, metric: str) -> str:
    if duel is None:
        return "<td></td>"
    link = samples_link(
        f"{duel.wins}–{duel.ties}–{duel.losses}",
        task=column.task,
        a=duel.first,
        b=duel.second,
        metric=metric,
        only="a",
    )
    return f'<td class="{duel.verdict}">{link}{MARKS[duel.verdict]}</td>'
