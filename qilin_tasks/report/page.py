"""The HTML page: tables and plots written out, the sample browser over packed data; nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board
from qilin_tasks.report.cost import cost_section
from qilin_tasks.report.matrix_page import matrix_section
from qilin_tasks.report.packing import Packed
from qilin_tasks.report.panel import Panel
from qilin_tasks.report.plots import plots_of
from qilin_tasks.report.policy import sha256_source
from qilin_tasks.report.samples_page import asset, samples_script, samples_section
from qilin_tasks.report.standings_page import standings_section
from qilin_tasks.report.tables import lifts_best_first, method, notes, signatures, warnings
from qilin_tasks.report.tables_page import lifts_table, metric_table, pairs_table

#: Files of the report that the page links to.
BESIDE = ("report.md", "report.tex", "results.csv", "pairs.csv")

#: Only with texts beside the page: a plain folder's pages count as of no origin.
FRAMES = "; frame-src 'self' file:"


def page(
    boards: Sequence[tuple[Board, Analysis]],
    packed: Packed,
    *,
    resamples: int,
    seed: int,
    title: str,
    panels: Sequence[Panel] = (),
) -> Iterator[str]:
    """The page in parts, to be written one after the other."""
    script, style = samples_script(), asset("page.css")
    # Only this very script runs: what a model wrote could not, even if it got into the page as markup.
    policy = (
        f"default-src 'none'; script-src '{sha256_source(script)}'; style-src '{sha256_source(style)}'; img-src data:; "
        f"base-uri 'none'; form-action 'none'{FRAMES if packed.beside else ''}"
    )
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><button id="theme" type="button">light / dark</button></header>'
        "<nav>"
    )
    for i, (board, _) in enumerate(boards):
        yield f'<a href="#b{i}">{escape(board.name)}</a>'
    yield "".join(f'<a href="#{escape(panel.name)}">{escape(panel.name)}</a>' for panel in panels)
    yield '<a href="#browser">samples</a><a href="#method">method</a></nav><main>'
    for i, (board, analysis) in enumerate(boards):
        yield from _board(board, analysis, f"b{i}", panels)
    yield "".join(panel.section for panel in panels)
    yield samples_section(packed)
    yield '<section id="method"><h2>Method</h2>'
    yield f'<p class="method">{escape(method(resamples=resamples, seed=seed))}</p>'
    links = ", ".join(f'<a href="{name}" download>{name}</a>' for name in BESIDE)
    yield f'<p class="soft">The numbers as files beside this page: {links}.</p></section>'
    yield "</main>"
    yield f'<script type="text/plain" id="core">{packed.core}</script>'
    for name, text in packed.blocks.items():
        yield f'<script type="text/plain" id="{escape(name)}">{text}</script>'
    yield f"<script>{script}</script></body></html>\n"


def _board(board: Board, analysis: Analysis, name: str, panels: Sequence[Panel]) -> Iterator[str]:
    documents = f"{analysis.documents:,} documents"
    if analysis.clusters != analysis.documents:
        documents += f" in {analysis.clusters:,} clusters"
    yield f'<section id="{name}"><h2>{escape(board.name)}</h2><p class="soft">{documents} in the paired statistics</p>'
    yield from standings_section(board, analysis)
    yield from cost_section(board)
    told = warnings(board, analysis)
    if told:
        yield f"<details><summary>{len(told)} {'warning' if len(told) == 1 else 'warnings'}</summary>"
        for text in told:
            yield f'<p class="warning">{escape(text)}</p>'
        yield "</details>"
    for text in notes(board):
        yield f'<p class="soft">{escape(text)}</p>'
    headline = board.headline()
    for metric in headline:
        yield _metric(board, analysis, metric, panels)
    yield f'<div class="plots">{"".join(plots_of(board, analysis))}</div>'
    yield from matrix_section(board, analysis)
    if analysis.pairs:
        yield pairs_table(board, analysis.pairs)
    if analysis.lifts:
        yield lifts_table(board, lifts_best_first(board, analysis))
    others = [metric for metric in board.metrics if metric not in headline]
    if others:
        yield f"<details><summary>{len(others)} more metrics</summary>"
        for metric in others:
            yield _metric(board, analysis, metric, panels)
        yield "</details>"
    yield "<details><summary>signatures</summary><ul>"
    for signature, names in signatures(board).items():
        yield f"<li><code>{escape(signature)}</code><br>{escape(', '.join(names))}</li>"
    yield "</ul></details></section>"


def _metric(board: Board, analysis: Analysis, metric: str, panels: Sequence[Panel]) -> str:
    """The metric's table, and a link to each panel that has an entry of it."""
    links = "".join(
        f'<p class="soft"><a href="#{panel.name}-{escape(metric)}">{escape(metric)} on the {panel.name} card</a></p>'
        for panel in panels
        if metric in panel.metrics
    )
    return metric_table(board, analysis, metric) + links
