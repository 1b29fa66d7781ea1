"""The HTML page: tables and plots written out, the sample browser over packed data; nothing is loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from qilin_tasks.report.analysis import Analysis, LiftRow, PairRow
from qilin_tasks.report.collect import Board
from qilin_tasks.report.packing import Packed
from qilin_tasks.report.plots import plots_of
from qilin_tasks.report.standings_page import standings_section
from qilin_tasks.report.tables import (
    MODEL,
    Cell,
    column_name,
    direction,
    method,
    number,
    p_value,
    published_notes,
    share,
    signatures,
    spread,
    table,
    warnings,
)


def page(
    boards: Sequence[tuple[Board, Analysis]], packed: Packed, *, resamples: int, seed: int, title: str
) -> Iterator[str]:
    """The page in parts, to be written one after the other."""
    script, style = _asset("page.js"), _asset("page.css")
    # Only this very script runs: what a model wrote could not, even if it got into the page as markup.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
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
    yield '<a href="#browser">samples</a><a href="#method">method</a></nav><main>'
    for i, (board, analysis) in enumerate(boards):
        yield from _board(board, analysis, f"b{i}")
    yield _browser(packed)
    yield '<section id="method"><h2>Method</h2>'
    yield f'<p class="method">{escape(method(resamples=resamples, seed=seed))}</p></section>'
    yield "</main>"
    yield f'<script type="text/plain" id="core">{packed.core}</script>'
    for name, text in packed.blocks.items():
        yield f'<script type="text/plain" id="{escape(name)}">{text}</script>'
    yield f"<script>{script}</script></body></html>\n"


def _asset(name: str) -> str:
    return files("qilin_tasks.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _board(board: Board, analysis: Analysis, name: str) -> Iterator[str]:
    documents = f"{analysis.documents:,} documents"
    if analysis.clusters != analysis.documents:
        documents += f" in {analysis.clusters:,} clusters"
    yield f'<section id="{name}"><h2>{escape(board.name)}</h2><p class="soft">{documents} in the paired statistics</p>'
    yield from standings_section(board, analysis)
    told = warnings(board, analysis)
    if told:
        yield f"<details><summary>{len(told)} {'warning' if len(told) == 1 else 'warnings'}</summary>"
        for text in told:
            yield f'<p class="warning">{escape(text)}</p>'
        yield "</details>"
    for text in published_notes(board):
        yield f'<p class="soft">{escape(text)}</p>'
    headline = board.headline()
    for metric in headline:
        yield _metric_table(board, analysis, metric)
    for plot in plots_of(board, analysis):
        yield f'<div class="scroll">{plot}</div>'
    if analysis.pairs:
        yield _pairs(analysis.pairs)
    if analysis.lifts:
        yield _lifts(analysis.lifts)
    others = [metric for metric in board.metrics if metric not in headline]
    if others:
        yield f"<details><summary>{len(others)} more metrics</summary>"
        for metric in others:
            yield _metric_table(board, analysis, metric)
        yield "</details>"
    yield "<details><summary>signatures</summary><ul>"
    for signature, names in signatures(board).items():
        yield f"<li><code>{escape(signature)}</code><br>{escape(', '.join(names))}</li>"
    yield "</ul></details></section>"


def _table(heads: Sequence[str], rows: Sequence[str], *, texts: int = 1) -> str:
    cells = "".join(
        f"<th{' class=' + chr(34) + 'text' + chr(34) if i < texts else ''}>{escape(head)}</th>"
        for i, head in enumerate(heads)
    )
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _metric_table(board: Board, analysis: Analysis, metric: str) -> str:
    better = direction(board.higher_is_better[metric])
    rows = []
    for row in table(board, analysis, metric):
        kind = "" if row.kind == MODEL else f' class="{row.kind}"'
        rows.append(f"<tr{kind}><td>{escape(row.name)}</td>{''.join(map(_cell, row.cells))}</tr>")
    heads = ["system", *(column_name(column) for column in board.columns)]
    return f'<h3>{escape(metric)} <span class="soft">{better}</span></h3>' + _table(heads, rows)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    start = f'<td data-value="{cell.value!r}" title="{escape(cell.signature)}">{number(cell.value)}'
    if cell.interval is None:
        return f"{start}</td>"
    i = cell.interval
    letters = f"<sup>{escape(cell.letters)}</sup>" if cell.letters else ""
    dagger = f'<span class="dagger" title="{escape(cell.problem)}"> †</span>' if cell.problem else ""
    return f"{start} ± {number(i.se)}{letters}{dagger}<small>[{number(i.low)}, {number(i.high)}] n={i.n}</small></td>"


def _pairs(pairs: Sequence[PairRow]) -> str:
    rows = [
        f"<tr><td>{escape(row.first)} − {escape(row.second)}</td>"
        f'<td class="text">{escape(row.condition)}</td><td class="text">{escape(row.metric)}</td>'
        f'<td data-value="{row.test.difference.value!r}">{spread(row.test.difference)}</td>'
        f'<td data-value="{row.test.p_holm!r}">{p_value(row.test.p_holm)}</td></tr>'
        for row in pairs
    ]
    heads = ["pair", "condition", "metric", "difference", "p (Holm)"]
    return "<details><summary>Models against each other</summary>" + _table(heads, rows, texts=3) + "</details>"


def _lifts(lifts: Sequence[LiftRow]) -> str:
    rows = []
    for row in lifts:
        closed = f' data-value="{row.share.value!r}"' if row.share else ""
        rows.append(
            f'<tr><td>{escape(row.model)}</td><td class="text">{escape(row.condition)}</td>'
            f'<td class="text">{escape(row.metric)}</td>'
            f'<td data-value="{row.lift.difference.value!r}">{spread(row.lift.difference)}</td>'
            f'<td data-value="{row.lift.p_holm!r}">{p_value(row.lift.p_holm)}</td>'
            f"<td{closed}>{share(row.share)}</td></tr>"
        )
    heads = ["model", "condition", "metric", "lift over no context", "p (Holm)", "share of the oracle gap"]
    return "<h3>Lift over no context, and share of the gap to the oracle that is closed</h3>" + _table(
        heads, rows, texts=3
    )


def _browser(packed: Packed) -> str:
    passage, output = packed.level
    return (
        '<section id="browser"><h2>Samples</h2>'
        f'<p class="soft">Texts are shown up to {output:,} characters of an output and {passage:,} of a passage; the '
        "samples files hold them whole.</p>"
        '<div class="controls">'
        '<label>task<select id="task"></select></label><label>model A<select id="a"></select></label>'
        '<label>model B<select id="b"></select></label><label>metric<select id="metric"></select></label>'
        '<label>sort by<select id="sort"></select></label>'
        '<label>order<button id="down" type="button">ascending</button></label>'
        '<label>filter (words of the query, or a key)<input id="filter" type="search"></label>'
        '<label>show all models<input id="all" type="checkbox"></label></div>'
        '<div id="sample" hidden></div>'
        '<div class="scroll"><table id="list"><thead><tr id="heads"></tr></thead>'
        '<tbody id="rows"></tbody></table></div>'
        '<div class="pager"><button id="previous" type="button">previous</button>'
        '<button id="next" type="button">next</button>'
        '<span id="count" class="soft" aria-live="polite">reading the samples …</span></div>'
        "<noscript>Sorting and the samples need JavaScript; the tables above do not.</noscript></section>"
    )
