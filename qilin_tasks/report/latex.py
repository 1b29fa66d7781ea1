"""The tables as LaTeX: booktabs, one a board for who is ahead, one a metric for its conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board
from qilin_tasks.report.standings import sentence, standings
from qilin_tasks.report.tables import MODEL, Cell, chosen, column_name, direction, family_notes, method, number, table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "<": "$<$",
    ">": "$>$",
    # After the line break of a row, a bracket would be read as its argument.
    "[": "{[}",
} | {character: f"\\{character}" for character in "&%$#_{}"}


def escape_latex(text: str) -> str:
    """Text that LaTeX prints and doesn't run: one line, without control characters."""
    printable = (c if c.isprintable() else " " for c in text)
    return "".join(_SPECIAL.get(c, c) for c in printable)


def latex(boards: Sequence[tuple[Board, Analysis]], *, resamples: int, seed: int, title: str) -> str:
    """Tables to be `\\input`; a comment at the top says what they need."""
    lines = [
        f"% {escape_latex(title)}",
        "% \\usepackage{booktabs}; names in other scripts need XeLaTeX or LuaLaTeX with a font that has them.",
        f"% {escape_latex(method(resamples=resamples, seed=seed))}",
        "",
    ]
    for board, analysis in boards:
        lines += _standings(board, analysis)
        for metric in board.headline():
            lines += _metric(board, analysis, metric)
    return "\n".join(lines)


def _standings(board: Board, analysis: Analysis) -> Iterator[str]:
    column, metric = chosen(board), board.headline()[0]
    rows = standings(board, analysis, column, metric)
    said = sentence(rows, analysis, column, metric)
    body = (
        [_name(row.name, row.kind), escape_latex(row.ranks), number(row.cell.value), _limits(row.cell)] for row in rows
    )
    caption = " ".join([f"{board.name}, {column_name(column)}: {metric}.", said, *family_notes(board)])
    yield from _table(caption, ["System", "Rank", "Mean", "95\\,\\%"], list(body))


def _metric(board: Board, analysis: Analysis, metric: str) -> Iterator[str]:
    heads = ["System", *(escape_latex(column_name(column)) for column in board.columns)]
    body = [
        [_name(row.name, row.kind), *("--" if cell is None else _cell(cell) for cell in row.cells)]
        for row in table(board, analysis, metric)
    ]
    caption = " ".join([f"{board.name}: {metric} ({direction(board.higher_is_better[metric])})", *family_notes(board)])
    yield from _table(caption, heads, body)


def _table(caption: str, heads: list[str], body: list[list[str]]) -> Iterator[str]:
    yield from (r"\begin{table}", r"\centering", f"\\caption{{{escape_latex(caption)}}}")
    yield from (f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule")
    yield from (" & ".join(heads) + r" \\", r"\midrule")
    yield from (" & ".join(row) + r" \\" for row in body)
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _name(name: str, kind: str) -> str:
    return escape_latex(name) + ("" if kind == MODEL else f" ({kind})")


def _limits(cell: Cell) -> str:
    return escape_latex(f"[{number(cell.interval.low)}, {number(cell.interval.high)}]") if cell.interval else ""


def _cell(cell: Cell) -> str:
    if cell.interval is None:
        return number(cell.value)
    letters = f"$^{{{cell.letters}}}$" if cell.letters else ""
    dagger = r"$^\dagger$" if cell.problem else ""
    return f"{number(cell.value)} $\\pm$ {number(cell.interval.se)}{letters}{dagger}"
