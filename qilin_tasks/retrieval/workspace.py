"""Finished parts of long work, kept for the next attempt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qilin_tasks.files import UNFINISHED, write_whole


def open_work(path: Path, recipe: Mapping[str, Any]) -> Path:
    """The folder of unfinished work for `path`: kept where it was begun with the same recipe, else begun anew."""
    folder = path.with_name(f".{path.name}.work")
    known = folder / "recipe.json"
    text = json.dumps(recipe, ensure_ascii=False, sort_keys=True)
    if folder.exists() and not (known.is_file() and known.read_text("utf-8") == text):
        shutil.rmtree(folder)
    if not folder.exists():
        folder.mkdir(parents=True)
        write_whole(known, text)
    for leftover in folder.glob(f"{UNFINISHED}*"):
        leftover.unlink()
    return folder


def close_work(path: Path) -> None:
    """Removes the folder of unfinished work for `path`."""
    shutil.rmtree(path.with_name(f".{path.name}.work"), ignore_errors=True)
