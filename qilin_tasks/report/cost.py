"""The cost of a board's models: tokens, time, memory and money, and quality against cost with its frontier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.marks import mark, style
from qilin_tasks.report.tables import column_name, escaped, number
from qilin_tasks.results.cost import HEADS, MARK, Cost, cells, cost_of, duration, frontier, price

NOTE = (
    f"Tokens as the server or the engine counts them; {MARK}: by the model's tokenizer, or not of every answer. Time "
    "is that of asking; tokens/s are prompt and answer tokens together. ★: no other model is as cheap and as good, and "
    "better in one of both."
)


@dataclass(frozen=True)
class CostRow:
    """A model in a column: its cost, what it is weighed by (None where unknown), and whether it is on the frontier."""

    model: str
    column: Column
    cost: Cost
    weight: float | None
    quality: float
    best: bool


def unit_of(costs: list[Cost]) -> str:
    """What models of a column are weighed by: money where all have prices of one currency, else tokens.

    "" where some were not counted.
    """
    if all(cost.money is not None for cost in costs) and len({cost.currency for cost in costs}) == 1:
        return "money"
    return "tokens" if all(cost.counted for cost in costs) else ""


def cost_rows(board: Board) -> list[CostRow]:
    """The rows of every column whose result notes its cost, cheapest first."""
    metric = board.headline()[0]
    lower = board.higher_is_better.get(metric) is False
    rows = []
    for column in board.columns:
        known = [
            (row, cost)
            for row in column.rows
            if metric in row.scores.values and (cost := cost_of(row.result)) is not None
        ]
        unit = unit_of([cost for _, cost in known])
        # Tokens of two tokenizers are two units; they still say which model writes at length.
        weights = [cost.money if unit == "money" else cost.prompt + cost.generated for _, cost in known]
        means = [row.scores.interval(metric).value for row, _ in known]
        compared = [i for i, (row, _) in enumerate(known) if unit and not row.problem]
        points = [((weights[i] or 0.0), -means[i] if lower else means[i]) for i in compared]
        best = dict(zip(compared, frontier(points), strict=True))
        made = [
            CostRow(
                row.result.model, column, cost, weights[i] if unit else None, means[i],
                len(compared) > 1 and best.get(i, False),
            )
            for i, (row, cost) in enumerate(known)
        ]  # fmt: skip
        rows += sorted(made, key=lambda one: (one.weight is None, one.weight or 0.0, one.model))
    return rows


def costs_beside(board: Board) -> dict[tuple[str, str], str]:
    """By (task, model) what stands beside a quality: money where the column is weighed by it, else tokens; or time."""
    found = {}
    for row in cost_rows(board):
        cost = row.cost
        tokens = f"{MARK if cost.estimated else ''}{cost.prompt + cost.generated:,} tokens" if cost.counted else ""
        priced = price(cost) if row.weight == cost.money else ""
        found[row.column.task, row.model] = priced or tokens or duration(cost.seconds)
    return found


def _heads(board: Board) -> tuple[str, ...]:
    return (HEADS[0], "condition", *HEADS[2:], board.headline()[0], "★")


def _texts(row: CostRow) -> tuple[str, ...]:
    return (row.model, column_name(row.column), *cells(row.cost), number(row.quality), "★" if row.best else "")


def cost_section(board: Board) -> Iterator[str]:
    """The panel of the page; nothing where no cost was noted."""
    rows = cost_rows(board)
    if not rows:
        return
    head = "".join(f'<th class="text">{escape(name)}</th>' for name in _heads(board))
    yield f'<details class="cost"><summary>Cost</summary><p class="soft">{escape(NOTE)}</p><div class="scroll">'
    yield f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>'
    for row in rows:
        kinds = (f' data-value="{value!r}"' if value is not None else "" for value in _values(row))
        pairs = zip(_texts(row), kinds, strict=True)
        yield "<tr>" + "".join(f"<td{kind}>{escape(text)}</td>" for text, kind in pairs) + "</tr>"
    yield "</tbody></table></div>"
    for column in board.columns:
        drawn = [row for row in rows if row.column is column and row.weight is not None]
        if len(drawn) > 1:
            yield _plot(board, column, drawn)
    yield "</details>"


def _values(row: CostRow) -> tuple[float | None, ...]:
    """What each cell is sorted by; None for texts."""
    cost = row.cost
    answer = cost.generated - (cost.reasoning or 0)
    numbers = (cost.prompt, cost.reasoning, answer, None, cost.seconds, cost.tokens_per_second, cost.peak_bytes)
    return (None, None, *numbers, cost.money, row.quality, float(row.best))


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 260, 60, 40, 28, 34


def _plot(board: Board, column: Column, rows: list[CostRow]) -> str:
    """Cost from left to right, quality from the bottom up; the frontier is a line of steps."""
    metric = board.headline()[0]
    most = max(row.weight or 0.0 for row in rows) or 1.0
    low, high = min(row.quality for row in rows), max(row.quality for row in rows)
    room = (high - low) * 0.08 or 0.01
    low, high = low - room, high + room

    def x(row: CostRow) -> float:
        return LEFT + (row.weight or 0.0) / most * (WIDTH - LEFT - RIGHT)

    def y(row: CostRow) -> float:
        return HEIGHT - BOTTOM - (row.quality - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    money = rows[0].cost.money is not None and rows[0].weight == rows[0].cost.money
    unit = (rows[0].cost.currency or "money") if money else "tokens"
    longest = f"{most:.4g}" if money else f"{most:,.0f}"
    title = f"{metric} against cost ({unit}), {column_name(column)}"
    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>',
        f'<text class="tick" x="{LEFT}" y="{HEIGHT - 16}">0</text>',
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 16}" text-anchor="end">{longest} {escape(unit)}</text>',
        f'<text class="tick" x="4" y="{TOP + 8}">{number(high)}</text>',
        f'<text class="tick" x="4" y="{HEIGHT - BOTTOM}">{number(low)}</text>',
    ]
    steps = sorted((row for row in rows if row.best), key=lambda row: (row.weight or 0.0, row.quality))
    if steps:
        path = f"M{x(steps[0]):.1f},{y(steps[0]):.1f}"
        path += "".join(f"H{x(row):.1f}V{y(row):.1f}" for row in steps[1:])
        parts.append(f'<path class="whisker" fill="none" stroke="currentColor" d="{path}"/>')
    for row in rows:
        star = " ★" if row.best else ""
        look = board.models.index(row.model)
        # The frontier reaches a point from below and leaves it to the right: above it the label is free of it. Labels
        # go towards the middle, so that a long name stays inside.
        left, low_down = x(row) < WIDTH / 2, y(row) + 16 > HEIGHT - BOTTOM - 6
        place = f'x="{x(row) + (4 if left else -4):.1f}" text-anchor="{"start" if left else "end"}"'
        parts.append(
            f'<g class="{style("model", look)}">{mark(look, x=x(row), y=y(row))}</g>'
            f'<text {place} y="{y(row) + (-8 if row.best or low_down else 16):.1f}">{escape(row.model + star)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<text class="title" x="0" y="14">{escape(title)}</text>{"".join(parts)}</svg>'
    )


def cost_markdown(board: Board) -> list[str]:
    """The same table for report.md; [] where no cost was noted."""
    rows = cost_rows(board)
    if not rows:
        return []
    heads = _heads(board)
    lines = ["### Cost", "", escaped(NOTE), ""]
    lines += [f"| {' | '.join(map(escaped, heads))} |", "|---|---|" + "---:|" * (len(heads) - 2)]
    lines += [f"| {' | '.join(map(escaped, _texts(row)))} |" for row in rows]
    return [*lines, ""]
