"""Plots as SVG text: conditions by model, score against answer length, the distribution of reciprocal ranks.

Colours come from the page's style, so that light and dark need no second drawing; see `marks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board, Column
from qilin_tasks.report.marks import dash, legend, mark, style
from qilin_tasks.report.tables import best_first, column_name, number

WIDTH = 560
LEFT, RIGHT, TOP, BOTTOM = 150, 20, 28, 34
#: Lengths that span more than this many times the least are drawn on a logarithmic scale.
WIDE = 8
LENGTH_BINS = 8
#: Characters of a model's name at the left.
LABEL = 18
RANK_CLASSES = ((1.0, "1"), (1 / 2, "2"), (1 / 3, "3"), (1 / 5, "4–5"), (1 / 10, "6–10"), (1e-9, "11+"), (0.0, "none"))


def svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f'<text class="title" x="0" y="14">{escape(title)}</text>{"".join(parts)}</svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    step = 10 ** np.floor(np.log10(max(high - low, 1e-9) / 4))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    # Adding zero makes -0 a plain one.
    return [float(t) + 0.0 for t in np.arange(np.ceil(low / step) * step, high + step / 1e6, step)]


class Scale:
    """Values to pixels along one direction; a logarithmic one counts everything below 1 as 1."""

    def __init__(self, low: float, high: float, start: float, end: float, *, logarithmic: bool = False) -> None:
        self.logarithmic = logarithmic
        low, high = self._place(low), self._place(high)
        margin = (high - low) * 0.04 or 0.5
        self.low, self.high = low - margin, high + margin
        self.start, self.end = start, end

    def _place(self, value: float) -> float:
        return float(np.log10(max(value, 1.0))) if self.logarithmic else value

    def __call__(self, value: float) -> float:
        return self.start + (self._place(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values inside of the scale."""
        if not self.logarithmic:
            return ticks(self.low, self.high)
        steps = [factor * 10.0**power for power in range(8) for factor in (1, 2, 5)]
        return [step for step in steps if self.low <= np.log10(step) <= self.high]


def x_axis(scale: Scale, bottom: float) -> list[str]:
    return [
        f'<line class="grid" x1="{scale(t):.1f}" x2="{scale(t):.1f}" y1="{TOP}" y2="{bottom:.1f}"/>'
        f'<text class="tick" text-anchor="middle" x="{scale(t):.1f}" y="{bottom + 14:.1f}">{t:g}</text>'
        for t in scale.ticks()
    ]


def conditions_plot(board: Board, analysis: Analysis, metric: str) -> str:
    """A line for each model: its mean with its 95 % interval under every condition."""
    models = [
        model
        for model in best_first(board, analysis)
        if any((column.task, model, metric) in analysis.intervals for column in board.columns)
    ]
    found = [i for (_, _, name), i in analysis.intervals.items() if name == metric and np.isfinite(i.low)]
    if not models or not found:
        return ""
    height = TOP + 26 * len(models) + BOTTOM + 20
    bottom = height - BOTTOM - 20
    scale = Scale(min(i.low for i in found), max(i.high for i in found), LEFT, WIDTH - RIGHT)
    parts = x_axis(scale, bottom)
    for line, model in enumerate(models):
        y = TOP + 26 * line + 14
        label = model if len(model) <= LABEL else model[: LABEL - 1] + "…"
        parts.append(f'<text class="label" text-anchor="end" x="{LEFT - 8}" y="{y + 4}">{escape(label)}</text>')
        for number_of, column in enumerate(board.columns):
            i = analysis.intervals.get((column.task, model, metric))
            if i is None or not np.isfinite(i.low):
                continue
            at = y - 6 + 12 * (number_of + 0.5) / len(board.columns)
            name = f"{model}, {column_name(column)}: {number(i.value)} [{number(i.low)}, {number(i.high)}]"
            parts.append(
                f'<g class="{style("condition", number_of)}"><title>{escape(name)}</title>'
                f'<line class="bar" x1="{scale(i.low):.1f}" x2="{scale(i.high):.1f}" y1="{at:.1f}" y2="{at:.1f}"/>'
                f"{mark(number_of, x=scale(i.value), y=at)}</g>"
            )
    series = [(i, column_name(column)) for i, column in enumerate(board.columns)]
    signs, more = legend("condition", series, left=LEFT, right=WIDTH - RIGHT, y=height - 6)
    parts.append(signs)
    return svg(height - 17 + more, f"{metric}: mean and 95 % interval by model", parts)


def length_plot(board: Board, column: Column, metric: str) -> str:
    """Mean score by answer length: a line for each model, through eight equally filled bins of its answers' lengths.

    A bin stands at its median, which a few endless answers don't move.
    """
    lines = []
    for row in column.rows:
        values = row.scores.values.get(metric)
        if values is None or row.result.is_baseline:
            continue
        lengths = row.scores.values.get("answer_chars")
        if lengths is None:
            texts = [raw if answer is None else answer for raw, answer in zip(row.outputs, row.answers, strict=True)]
            lengths = np.array([float(len(text)) for text in texts])
        usable = np.isfinite(values) & np.isfinite(lengths)
        order = np.argsort(lengths[usable], kind="stable")
        if len(order) < 2 * LENGTH_BINS:
            continue
        bins = np.array_split(order, LENGTH_BINS)
        points = [(float(np.median(lengths[usable][b])), float(values[usable][b].mean())) for b in bins]
        lines.append((board.models.index(row.result.model), row.result.model, points))
    if not lines:
        return ""
    height = 260
    xs, ys = ([p[side] for _, _, points in lines for p in points] for side in (0, 1))
    logarithmic = max(xs) > WIDE * max(min(xs), 1.0)
    bottom = height - BOTTOM - 20
    x = Scale(min(xs), max(xs), 60, WIDTH - RIGHT, logarithmic=logarithmic)
    y = Scale(min(ys), max(ys), bottom, TOP)
    parts = x_axis(x, bottom)
    parts += [
        f'<line class="grid" x1="60" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text class="tick" text-anchor="end" x="54" y="{y(t) + 4:.1f}">{t:g}</text>'
        for t in y.ticks()
    ]
    for i, model, points in lines:
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(
            f'<g class="{style("model", i)}"><title>{escape(model)}</title><polyline{dash(i)} points="{path}"/>'
            + "".join(mark(i, x=x(a), y=y(b)) for a, b in points)
            + "</g>"
        )
    signs, more = legend("model", [(i, name) for i, name, _ in lines], left=60, right=WIDTH - RIGHT, y=height - 4)
    scale = "characters, logarithmic" if logarithmic else "characters"
    return svg(height + more, f"{column.task}: {metric} against answer length ({scale})", [*parts, signs])


def reciprocal_rank_plot(column: Column, metric: str) -> str:
    """Where the first relevant item stands: the share of documents in each class of ranks, a bar for each model."""
    rows = [row for row in column.rows if metric in row.scores.values]
    if not rows:
        return ""
    height = TOP + 24 * len(rows) + BOTTOM
    parts = []
    for line, row in enumerate(rows):
        values = row.scores.values[metric]
        values = values[np.isfinite(values)]
        y = TOP + 24 * line
        model = row.result.model
        label = model if len(model) <= LABEL else model[: LABEL - 1] + "…"
        parts.append(f'<text class="label" text-anchor="end" x="{LEFT - 8}" y="{y + 15}">{escape(label)}</text>')
        x, upper = float(LEFT), np.inf
        for i, (lower, name) in enumerate(RANK_CLASSES):
            inside = (values >= lower - 1e-12) & (values < upper) if lower > 0 else values <= 0
            upper = lower - 1e-12
            part = float(inside.mean()) if len(values) else 0.0
            width = part * (WIDTH - LEFT - RIGHT)
            parts.append(
                f'<g class="{style("rank", i)}"><title>{escape(f"{model}: rank {name}: {100 * part:.1f} %")}</title>'
                f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="16"/></g>'
            )
            x += width
    series = [(i, f"rank {name}") for i, (_, name) in enumerate(RANK_CLASSES)]
    signs, more = legend("rank", series, left=LEFT, right=WIDTH - RIGHT, y=height - 8)
    parts.append(signs)
    return svg(height - 17 + more, f"{column.task}: rank of the first relevant item ({metric})", parts)


def reciprocal_rank_metric(board: Board) -> str | None:
    """The metric that holds a reciprocal rank for each document, if the board has one."""
    return next((name for name in board.metrics if name in ("mrr@100", "mrr", "mrr@10")), None)


def plots_of(board: Board, analysis: Analysis) -> list[str]:
    """All plots of a board."""
    ranks = reciprocal_rank_metric(board)
    drawn = [conditions_plot(board, analysis, metric) for metric in board.headline()]
    for column in board.columns:
        if ranks is not None:
            drawn.append(reciprocal_rank_plot(column, ranks))
        elif any(any(row.outputs) for row in column.rows):
            drawn.append(length_plot(board, column, board.headline()[0]))
    return [plot for plot in drawn if plot]
