"""The evidence grid on the page: a metric by the share of distractors, a curve a model and place, and the area."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from qilin_tasks.report.analysis import Analysis, range_of
from qilin_tasks.report.collect import Board, Row, aligned, common_keys
from qilin_tasks.report.marks import dash, legend, mark, style
from qilin_tasks.report.panel import Panel, plain_table
from qilin_tasks.report.plots import BOTTOM, RIGHT, TOP, WIDTH, Scale, svg, x_axis
from qilin_tasks.report.tables import number, spread
from qilin_tasks.results.stats import Interval, mean_interval

FAMILY, NAME = "dqa_grid", "grid"
PLACES = ("first", "middle", "last")
HEIGHT, LEFT = 260, 60


@dataclass(frozen=True)
class Curve:
    """One model's means by the share of distractors among `notes`, the cited ones at `place`; `area`: mean height.

    `place` is "" where there is none to choose: all notes cited, or none.
    """

    model: str
    notes: int
    place: str
    points: list[tuple[float, Interval]]
    area: Interval

    @property
    def name(self) -> str:
        """What the legend says."""
        # A long model's name is cut, so that what tells its curves apart comes first.
        return f"cited {self.place}, {self.model}" if self.place else self.model


def grid_panel(boards: Sequence[tuple[Board, Analysis]]) -> Panel | None:
    """The panel of all cells of `qilin_dqa_grid` among the boards; None where they make no curve."""
    grid = [(board, analysis) for board, analysis in boards if any(_cells_of(board))]
    if not grid:
        return None
    parts = []
    for metric in grid[0][0].headline():
        found = curves(grid, metric)
        for notes in dict.fromkeys(curve.notes for curve in found):
            same = [curve for curve in found if curve.notes == notes]
            parts.append(f'<div class="scroll">{_plot(same, metric)}</div>')
            rows = [("", [curve.name, spread(curve.area), f"{curve.area.n:,}"]) for curve in same]
            parts.append(plain_table(["curve", "area under it (mean height) [95 %]", "documents"], rows))
    if not parts:
        return None
    about = (
        "Cited notes among distractors. The area is of the curve over the shares that were asked, divided by their "
        "span, over the documents that all its cells share; its interval is that of its documents' own areas."
    )
    return Panel(NAME, f'<h2>Evidence grid</h2><p class="soft">{about}</p>{"".join(parts)}')


def curves(grid: Sequence[tuple[Board, Analysis]], metric: str) -> list[Curve]:
    """Every curve of at least two shares of distractors, by number of notes, model and place."""
    cells: dict[tuple[int, str], list[tuple[float, str, Row, Interval]]] = {}
    for board, analysis in grid:
        for row in _cells_of(board):
            about, result = row.result.metadata, row.result
            interval = analysis.intervals.get((result.task, result.model, metric))
            if interval is not None:
                cell = (float(about["distractors"]), str(about["place"]), row, interval)
                cells.setdefault((int(about["notes"]), result.model), []).append(cell)
    found = []
    for (notes, model), members in sorted(cells.items(), key=lambda item: item[0]):
        ends = [cell for cell in members if cell[0] in (0.0, 1.0)]
        inner = {place: [c for c in members if c not in ends and c[1] == place] for place in PLACES}
        for place, between in inner.items() if any(inner.values()) else [("", [])]:
            line = sorted([*ends, *between], key=lambda cell: cell[0])
            if len(line) > 1 and (between or not place) and (area := _area(line, metric)) is not None:
                found.append(Curve(model, notes, place, [(share, interval) for share, _, _, interval in line], area))
    return found


def _cells_of(board: Board) -> Iterator[Row]:
    for column in board.columns:
        for row in column.rows:
            if row.result.parts.get("family") == FAMILY and {"notes", "distractors", "place"} <= {*row.result.metadata}:
                yield row


def _area(line: Sequence[tuple[float, str, Row, Interval]], metric: str) -> Interval | None:
    """The trapezoids of each shared document, as a mean; None where no document is shared by all cells."""
    rows = [row for _, _, row, _ in line]
    keys = common_keys(rows)
    if not keys:
        return None
    shares = np.array([share for share, _, _, _ in line])
    values = np.stack([aligned(row, metric, keys) for row in rows])
    steps = np.diff(shares)[:, None]
    areas = (steps * (values[1:] + values[:-1]) / 2).sum(axis=0) / (shares[-1] - shares[0])
    return mean_interval(areas, bounds=range_of(rows[0], metric))


def _plot(lines: Sequence[Curve], metric: str) -> str:
    bottom = HEIGHT - BOTTOM
    intervals = [interval for line in lines for _, interval in line.points]
    ends = [end for i in intervals for end in (i.low, i.high, i.value) if np.isfinite(end)]
    x, y = Scale(0.0, 1.0, LEFT, WIDTH - RIGHT), Scale(min(ends), max(ends), bottom, TOP)
    parts = x_axis(x, bottom)
    parts += [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{y(t) + 4:.1f}">{t:g}</text>'
        for t in y.ticks()
    ]
    for place, line in enumerate(lines):
        # Side by side, so that intervals at one share can be told apart.
        shift = 5 * (place - (len(lines) - 1) / 2)
        path = " ".join(f"{x(share) + shift:.1f},{y(i.value):.1f}" for share, i in line.points)
        points = "".join(_point(place, x(share) + shift, y, i, f"{line.name}, {share:g}") for share, i in line.points)
        parts.append(f'<g class="{style("model", place)}"><polyline{dash(place)} points="{path}"/>{points}</g>')
    named = [(place, line.name) for place, line in enumerate(lines)]
    signs, more = legend("model", named, left=LEFT, right=WIDTH - RIGHT, y=HEIGHT + 6)
    return svg(HEIGHT + more, f"{metric} by share of distractors, {lines[0].notes} notes", [*parts, signs])


def _point(place: int, at: float, y: Scale, interval: Interval, name: str) -> str:
    said = escape(f"{name}: {number(interval.value)} [{number(interval.low)}, {number(interval.high)}]")
    bar = ""
    if np.isfinite(interval.low):
        ends = f'y1="{y(interval.low):.1f}" y2="{y(interval.high):.1f}"'
        bar = f'<line class="bar" x1="{at:.1f}" x2="{at:.1f}" {ends}/>'
    return f"<g><title>{said}</title>{bar}{mark(place, x=at, y=y(interval.value))}</g>"
