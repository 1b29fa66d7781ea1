"""The page's samples: the section that the program fills, and the program, joined out of its parts."""

from __future__ import annotations

from importlib.resources import files

from qilin_tasks.report.packing import Packed

#: In the order in which they are joined: each may use what stands before it when the page loads.
SCRIPTS = ("base", "tables", "copy", "view", "data", "diff", "sample", "list", "start")


def asset(name: str) -> str:
    """A file that the page is made of."""
    return files("qilin_tasks.report").joinpath(name).read_text(encoding="utf-8")


def samples_script() -> str:
    """The whole program, in one scope of its own."""
    parts = "\n".join(asset(f"script/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def samples_section(packed: Packed) -> str:
    """The samples' controls, the document that is looked at, the list."""
    passage, output = packed.level
    where = " The texts lie in the folder texts beside this page." if packed.beside else ""
    selects = (
        ("task", "task"), ("model A", "a"), ("model B", "b"), ("metric", "metric"), ("show", "only"),
    )  # fmt: skip
    return (
        '<section id="browser"><h2>Samples</h2>'
        f'<p class="soft">Texts are shown up to {output:,} characters of an output and {passage:,} of a passage; the '
        f"samples files hold them whole.{where} In an opened document: j or → next, k or ← previous, Esc closes. "
        "The address holds the view: it can be sent.</p>"
        f'<div class="controls">{"".join(_select(*one) for one in selects)}'
        '<label>… than<input id="by" type="number" min="0" step="any"></label>'
        '<label>search (words, or a key)<input id="filter" type="search"></label>'
        f"{_select('search in', 'in')}{_select('sort by', 'sort')}"
        '<label>order<button id="down" type="button">ascending</button></label>'
        f"{_select('mark', 'mark')}"
        '<label>show all models<input id="all" type="checkbox"></label></div>'
        '<div id="sample" role="region" aria-label="the opened document" tabindex="-1" hidden><div class="pager">'
        '<button id="close" type="button">close</button><button id="before" type="button">previous</button>'
        '<button id="after" type="button">next</button><span id="place" class="soft" aria-live="polite"></span></div>'
        '<div id="shown"></div></div>'
        '<div class="scroll"><table id="list"><thead><tr id="heads"></tr></thead>'
        '<tbody id="rows"></tbody></table></div>'
        '<div class="pager"><button id="previous" type="button">previous page</button>'
        '<button id="next" type="button">next page</button>'
        '<span id="count" class="soft" aria-live="polite">reading the samples …</span></div>'
        "<noscript>Sorting and the samples need JavaScript; the tables above do not.</noscript></section>"
    )


def _select(text: str, name: str) -> str:
    return f'<label>{text}<select id="{name}"></select></label>'
