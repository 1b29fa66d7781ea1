"""The row of a family in upstream's table of tasks, `lm_eval/tasks/README.md`."""

from __future__ import annotations

import re

from qilin_tasks.errors import DataError

_ROW = re.compile(r"^\| *(?:\[(?P<linked>[^\]]+)\]|(?P<plain>[^|\[]+?)) *(?:\([^)]*\))? *\|")


def with_row(text: str, *, name: str, description: str, languages: str) -> str:
    """The README with the family's row in its place, or in that of its old row. DataError without a table."""
    lines = text.splitlines(keepends=True)
    rule = next((number for number, line in enumerate(lines) if re.match(r"\| *:?-{3,}", line)), None)
    if rule is None or rule == 0:
        raise DataError("lm_eval/tasks/README.md holds no table of task families; is this a checkout of the harness?")
    widths = [len(cell) - 2 for cell in lines[rule - 1].strip().strip("|").split("|")]
    cells = (f"[{name}]({name}/README.md)", description, languages)
    row = "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)) + " |\n"
    end = next((n for n in range(rule + 1, len(lines)) if not lines[n].startswith("|")), len(lines))
    names = [_name(line) for line in lines[rule + 1 : end]]
    if name in names:
        lines[rule + 1 + names.index(name)] = row
    else:
        lines.insert(rule + 1 + _place(name, names), row)
    return "".join(lines)


def _name(line: str) -> str:
    match = _ROW.match(line)
    return (match["linked"] or match["plain"]).strip().lower() if match else ""


def _place(name: str, names: list[str]) -> int:
    """Where fewest rows stand on the wrong side: the table is not quite sorted."""
    wrong = [sum(n > name for n in names[:at]) + sum(n < name for n in names[at:]) for at in range(len(names) + 1)]
    return max(at for at, count in enumerate(wrong) if count == min(wrong))
