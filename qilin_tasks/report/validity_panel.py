"""The validity card on the page: what edits do to each metric, and how it agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from qilin_tasks.report.panel import Panel, plain_table, read_stored
from qilin_tasks.validity.card import Card, Row, Rung
from qilin_tasks.validity.edits import EDITS

NAME = "validity"
COMMAND = "qilin-tasks validate --json > validity.json"


def validity_panel(path: Path) -> Panel:
    """The panel of a stored card. Raises DataError where the file is none."""
    made = cast(Card, read_stored(path, keys=("texts", "labels", "pairs", "baseline", "metrics"), command=COMMAND))
    heads = ["metric", *(f"{edit.about} ({edit.harm})" for edit in EDITS.values())]
    if made["labels"]:
        heads += ["Spearman with people", f"minus {made['baseline']}"]
    rows = [(f"{NAME}-{name}", [name, *_cells(made, row)]) for name, row in made["metrics"].items()]
    about = f"Edited texts against themselves: mean over {made['texts']:,} texts, those that the edit changes."
    if made["labels"]:
        about += f" Agreement with people: {made['labels']:,} labels of {made['pairs']:,} pairs."
        if made["people"] is not None:
            about += f" One annotator with another: {made['people']:.3f}."
    return Panel(
        NAME,
        "<h2>How far each metric can be trusted</h2>"
        f'<p class="soft">{about} Intervals: 95 %. A metric that gives much to a harmful edit does not see it.</p>'
        + plain_table(heads, rows),
        frozenset(made["metrics"]),
    )


def _cells(made: Card, row: Row) -> list[str]:
    ladder = row.get("ladder", {})
    cells = [_rung(ladder.get(edit)) for edit in EDITS]
    if made["labels"]:
        less = row.get("minus_baseline")
        cells.append(f"{row['spearman']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" if "spearman" in row else "–")
        cells.append(f"{less[0]:+.3f} [{less[1]:+.3f}, {less[2]:+.3f}]" if less else "–")
    return cells


def _rung(rung: Rung | None) -> str:
    return "–" if rung is None else f"{rung['value']:.3f} [{rung['low']:.3f}, {rung['high']:.3f}]"
