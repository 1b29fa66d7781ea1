"""A judgement on the page: whether the judge can be used, its means, corrected by people's labels, its checks."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import cast

from qilin_tasks.errors import DataError
from qilin_tasks.judge.outcome import FORMAT, Judgement
from qilin_tasks.judge.tables import cells, heads, verdict
from qilin_tasks.report.panel import Panel, plain_table, read_stored

COMMAND = "qilin-tasks judge … --out FOLDER"


def judge_panel(path: Path, *, name: str) -> Panel:
    """The panel of a stored `judgement-*.json`. Raises DataError where the file is none, or of another format."""
    keys = ("format", "mode", "judge", "rows", "checks", "bad", "signature", "documents", "cut")
    made = cast(Judgement, read_stored(path, keys=keys, command=COMMAND))
    if made["format"] != FORMAT:
        raise DataError(f"{path}: format {made['format']!r}, this version reads {FORMAT}; judge again (`{COMMAND}`)")
    columns = heads(made)
    checks = [
        (
            "",
            [
                one["about"],
                "not known" if one["value"] is None else f"{one['value']:.3f}",
                f"{'≥' if one['least'] else '≤'} {one['limit']:g}",
                "passed" if one["passed"] else "failed",
            ],
        )
        for one in made["checks"]
    ]
    kind = "warning" if made["bad"] else "lead"
    return Panel(
        name,
        f"<h2>Answers judged by {escape(made['judge'])} ({escape(made['mode'])})</h2>"
        f'<p class="{kind}">{escape(verdict(made))}</p>'
        + plain_table(columns, [("", cells(row, columns)) for row in made["rows"]])
        + f'<p class="soft">{made["documents"]:,} documents; means with 95 % intervals. Answers that the judge could '
        f"not be read on have no score; {made['cut']:,} answers were cut to what a judge is shown.</p>"
        + "<h3>Can this judge be trusted?</h3>"
        + plain_table(["check", "value", "bound", ""], checks)
        + f"<details><summary>signature</summary><code>{escape(made['signature'])}</code></details>",
    )
