"""What the plots and the matrix draw: series that are told apart without colour, outliers, wins and losses."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import write_run

from qilin_tasks.report.analysis import analyse
from qilin_tasks.report.collect import Board, boards_of
from qilin_tasks.report.marks import CONDITION_SHADES, HUES, SHAPES, dash, legend, mark, style
from qilin_tasks.report.matrix import duels
from qilin_tasks.report.plots import length_plot
from qilin_tasks.results.reader import find_results

CSS = files("qilin_tasks.report").joinpath("page.css").read_text(encoding="utf-8")
THEMES = {"light": ("#fff", 0), "dark": ("#14171a", 1)}


def luminance(colour: str) -> float:
    """WCAG 2's relative luminance."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * c for c in digits)
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def lightness(colour: str) -> float:
    """CIE L*, 0 to 100."""
    y = luminance(colour)
    return float(116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y)


def colours(kind: str, count: int, theme: str) -> list[str]:
    """A kind's colours as the style gives them."""
    found = [re.findall(rf"--{kind}{i}: (#\w+);", CSS) for i in range(count)]
    return [values[THEMES[theme][1]] for values in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("kind", "count", "apart"), [("model", HUES, 10), ("condition", CONDITION_SHADES, 3)])
def test_colours_differ_in_lightness_and_stand_out_from_the_paper(
    kind: str, count: int, apart: float, theme: str
) -> None:
    drawn = colours(kind, count, theme)
    paper = luminance(THEMES[theme][0])
    for colour in drawn:
        low, high = sorted((luminance(colour), paper))
        # WCAG 1.4.11: graphics need three to one.
        assert (high + 0.05) / (low + 0.05) >= 3, colour
    for first, second in pairwise(drawn):
        assert abs(lightness(first) - lightness(second)) >= apart, (first, second)


def test_forty_models_are_told_apart_and_most_without_colour() -> None:
    looks = [(style("model", i), mark(i, x=0, y=0), dash(i)) for i in range(4 * HUES)]
    assert len(set(looks)) == len(looks)
    # By shape and dash alone: as many as there are of both.
    assert len({look[1:] for look in looks}) == len(SHAPES) * 4


@given(st.lists(st.text(max_size=40), max_size=50))
def test_a_legend_stays_within_its_width(names: list[str]) -> None:
    text, height = legend("model", list(enumerate(names)), left=60, right=540, y=20)
    places = [float(x) for x in re.findall(r'class="tick" x="(\d+)"', text)]
    assert len(places) == len(names)
    assert all(80 <= x < 540 for x in places)
    lines = {float(y) for y in re.findall(r'class="tick" x="\d+" y="(\d+)"', text)}
    assert height == 17 * max(1, len(lines))


def board_of(
    folder: Path, scores: dict[str, list[float]], *, lower: bool = False, lengths: list[int] | None = None
) -> Board:
    for model, values in scores.items():
        docs = [{"doc_key": i, "query": "q"} for i in range(len(values))]
        write_run(
            folder / model,
            model=model,
            task="t",
            docs=docs,
            responses=["x" * (lengths[i] if lengths else 10) for i in range(len(values))],
            scores=[{"em": value} for value in values],
            signature="other|data:1",
            lower_is_better=["em"] if lower else (),
        )
    (board,) = boards_of(find_results([folder]))
    return board


@pytest.mark.parametrize("lower", [False, True])
def test_wins_ties_and_losses(tmp_path: Path, lower: bool) -> None:
    high, low = [0.5] * 30 + [0.9] * 20, [0.5] * 30 + [0.9] * 2 + [0.1] * 18
    board = board_of(tmp_path, {"a": high, "b": low, "c": [0.50001] * 30 + [0.9] * 20}, lower=lower)
    analysis = analyse(board, resamples=500, seed=1)
    found = duels(board, analysis, board.columns[0], "em")
    duel = found["b", "a"] if lower else found["a", "b"]
    assert (duel.wins, duel.ties, duel.losses, duel.verdict) == (18, 32, 0, "ahead")
    back = found[duel.second, duel.first]
    assert (back.wins, back.ties, back.losses, back.verdict) == (0, 32, 18, "behind")
    # As the page holds scores, in ten thousandths, a and c are the same; the test sees more.
    assert (found["a", "c"].ties, found["a", "c"].verdict) == (50, "ahead" if lower else "behind")
    assert len(found) == 6


def test_nobody_wins_where_no_direction_is_better(tmp_path: Path) -> None:
    board = board_of(tmp_path, {"a": [0.1] * 20, "b": [0.2] * 20})
    board.higher_is_better["em"] = None
    assert duels(board, analyse(board, resamples=100, seed=1), board.columns[0], "em") == {}


@pytest.mark.parametrize("outlier", [200, 20_000])
def test_a_few_endless_answers_leave_the_length_plot_readable(tmp_path: Path, outlier: int) -> None:
    lengths = [50 + i for i in range(159)] + [outlier]
    board = board_of(tmp_path, {"a": [i / 200 for i in range(160)]}, lengths=lengths)
    plot = length_plot(board, board.columns[0], "em")
    places = [float(x) for x in re.findall(r"translate\(([\d.]+) ", plot)][:8]
    # Every bin takes about its share of the width, whatever the longest answer is.
    gaps = np.diff(places)
    assert gaps.min() > 40
    assert gaps.max() < 2 * gaps.min()


def test_lengths_of_many_sizes_are_on_a_logarithmic_scale(tmp_path: Path) -> None:
    board = board_of(tmp_path, {"a": [0.5] * 160}, lengths=[int(10 * 1.04**i) for i in range(160)])
    plot = length_plot(board, board.columns[0], "em")
    assert "characters, logarithmic" in plot
    places = [float(x) for x in re.findall(r"translate\(([\d.]+) ", plot)][:8]
    assert np.diff(places).max() < 1.3 * np.diff(places).min()


def test_a_model_looks_the_same_in_every_column(tmp_path: Path) -> None:
    for column, models in (("na", "bc"), ("bm25", "abc")):
        for model in models:
            write_run(
                tmp_path / model / column,
                model=model,
                task=f"t_{column}",
                docs=[{"doc_key": i, "query": "q"} for i in range(40)],
                responses=["x" * (i + 1) for i in range(40)],
                scores=[{"em": i / 40} for i in range(40)],
                signature=f"other|data:{column}",
                metadata={"context": column},
            )
    (board,) = boards_of(find_results([tmp_path]))
    looks = [
        dict(re.findall(r'<g class="(model\d)"><title>(\w)</title>', length_plot(board, column, "em")))
        for column in board.columns
    ]
    assert looks == [{"model1": "b", "model2": "c"}, {"model0": "a", "model1": "b", "model2": "c"}]
