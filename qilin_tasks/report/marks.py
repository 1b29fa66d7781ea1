"""How a plot tells its series apart: a colour, a shape and a dash, so that none has to be known by its colour alone.

Three kinds of series, each with colours of its own: `model` (hues), `condition` (one hue from dark to light), `rank`
(filled from full to none). A model has the same in every plot of its board. Colours are the page's style.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

#: Hues of models; a style has `.model0` to `.model9`. With the shapes, forty and more models stay distinct.
HUES = 10
CONDITION_SHADES = 4
#: Outlines around (0, 0), about 8 across.
SHAPES = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0Z",
    "M-3.3-3.3h6.6v6.6h-6.6Z",
    "M0-4.4L4.2 3.2H-4.2Z",
    "M0-4.8L4.2 0L0 4.8L-4.2 0Z",
    "M0 4.4L4.2-3.2H-4.2Z",
    "M-1.4-4.2h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8Z",
    "M-4-4L0-1.6L4-4L1.6 0L4 4L0 1.6L-4 4L-1.6 0Z",
)
DASHES = ("", "7 3", "2 3", "9 3 2 3")


def style(kind: str, index: int) -> str:
    """The class of a series."""
    shades = {"model": HUES, "condition": CONDITION_SHADES}.get(kind)
    return f"{kind}{index % shades if shades else index}"


def mark(index: int, *, x: float, y: float) -> str:
    """The shape of a series at a place."""
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{SHAPES[index % len(SHAPES)]}"/>'


def dash(index: int) -> str:
    """The dash of a model's line, as an attribute: another one for every ten models."""
    pattern = DASHES[index // HUES % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def legend(kind: str, series: Sequence[tuple[int, str]], *, left: float, right: float, y: float) -> tuple[str, float]:
    """(index, name) of each series with its mark, in as many lines as it takes; and the height of them."""
    parts, x, line = [], left, y
    for index, name in series:
        text = name if len(name) <= 24 else name[:23] + "…"
        width = 40 + 7 * len(text)
        if x > left and x + width > right:
            x, line = left, line + 17
        sign = (
            f'<rect x="{x:.0f}" y="{line - 10:.0f}" width="14" height="11"/>'
            if kind == "rank"
            else f'<line{dash(index)} x1="{x - 6:.0f}" x2="{x + 16:.0f}" y1="{line - 4:.0f}" y2="{line - 4:.0f}"/>'
            + mark(index, x=x + 5, y=line - 4)
        )
        parts.append(
            f'<g class="{style(kind, index)}">{sign}</g>'
            f'<text class="tick" x="{x + 20:.0f}" y="{line:.0f}">{escape(text)}</text>'
        )
        x += width
    return "".join(parts), line - y + 17
