"""A panel: a section of the page beside the boards, from another command's stored JSON or from the boards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from qilin_tasks.errors import DataError


class Panel(NamedTuple):
    """`name` is the section's id and, in the navigation, its text; `metrics` have an entry `NAME-METRIC` in it."""

    name: str
    body: str
    metrics: frozenset[str] = frozenset()

    @property
    def section(self) -> str:
        """The whole section."""
        return f'<section id="{escape(self.name)}">{self.body}</section>'


def read_stored(path: Path, *, keys: Sequence[str], command: str) -> dict[str, Any]:
    """The JSON object that a command wrote. Raises DataError for another file, with the command that makes one."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read ({error}); `{command}` writes it") from error
    missing = [key for key in keys if not isinstance(stored, dict) or key not in stored]
    if missing:
        raise DataError(f"{path}: has no {', '.join(missing)}; `{command}` writes it")
    return dict(stored)


def plain_table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table of texts; each row is (its id or "", its cells), the first column and head are texts."""
    head = "".join(f"<th{' class=text' if not i else ''}>{escape(text)}</th>" for i, text in enumerate(heads))
    body = "".join(_row(name, cells) for name, cells in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(name: str, cells: Sequence[str]) -> str:
    start = f'<tr id="{escape(name)}">' if name else "<tr>"
    return f"{start}{''.join(f'<td>{escape(text)}</td>' for text in cells)}</tr>"
