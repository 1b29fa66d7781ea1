"""What the converters share: the two files that `qilin-tasks new-data` reads, and answers of several parts as text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Between the parts of an answer that are all needed; the metrics in tasks/ split there.
PARTS = "␟"
MOST = 1000


class Notes:
    """The corpus: each title and text once, with the id that questions name it by."""

    def __init__(self) -> None:
        self.ids: dict[tuple[str, str], str] = {}

    def add(self, text: str, title: str = "") -> str:
        """The id of a note; the same text again has the same one."""
        return self.ids.setdefault((title, text), str(len(self.ids)))

    def rows(self) -> list[dict[str, str]]:
        """The notes as rows, in the order of their ids."""
        return [{"id": key, "title": title, "text": text} for (title, text), key in self.ids.items()]


def all_of(parts: Sequence[str | Sequence[str]], *, where: str) -> list[str]:
    """References for parts that are all needed, each a text or a list of texts that say the same: every choice."""
    choices = [[part] if isinstance(part, str) else list(part) for part in parts]
    several = [PARTS.join(choice) for choice in itertools.islice(itertools.product(*choices), MOST + 1)]
    if not 0 < len(several) <= MOST:
        raise SystemExit(f"{where}: {len(several)} ways to say the answer, 1 to {MOST} are possible here")
    return several


def write(folder: Path, questions: Iterable[Mapping[str, Any]], notes: Notes) -> None:
    """`qa.jsonl` and `notes.jsonl`, and the command that comes next."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("qa.jsonl", questions), ("notes.jsonl", notes.rows())):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text("".join(lines), encoding="utf-8")
    print(f"qilin-tasks new-data FOLDER --from {folder}/qa.jsonl --notes {folder}/notes.jsonl")
