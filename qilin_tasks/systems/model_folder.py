"""Where a trained model goes: a folder that appears whole, with what was done beside the weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from qilin_tasks.errors import SettingError
from qilin_tasks.files import put_folder, write_whole
from qilin_tasks.retrieval.workspace import close_work


class Saved(Protocol):
    """What can be written into a folder."""

    def save(self, folder: Path) -> None:
        """Writes all that loading needs."""


def check_new(out: Path) -> None:
    """SettingError where `out` is there already: a trained model is never written over."""
    if out.exists():
        raise SettingError(f"--out {str(out)!r}: is there already; choose another folder")


def put_model(out: Path, model: Saved, about: Mapping[str, Any], *, work: Path) -> None:
    """The model with `about` as its `training.json` at `out`, by way of the unfinished `work`, which goes."""
    place = work / "model"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    model.save(place)
    write_whole(place / "training.json", json.dumps(about, indent=1))
    out.parent.mkdir(parents=True, exist_ok=True)
    put_folder(place, out)
    close_work(out)
