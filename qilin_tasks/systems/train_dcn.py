"""DCN-V2 trained into a folder: the recipe's settings, saved after every pass, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

import yaml

from qilin_tasks import __version__
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.files import locked, put_folder, write_whole
from qilin_tasks.retrieval.workspace import close_work, open_work
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.systems.dcn_v2 import DcnSettings, train_dcn
from qilin_tasks.systems.recipe import RECIPES, TRAINING_CONFIGS

DCN = "dcn-v2"


def dcn_settings(recipe: str, *, seed: int, changes: Mapping[str, int | float | None]) -> DcnSettings:
    """The recipe's settings with changes (None: none). SettingError for a recipe that there is none of."""
    if recipe not in RECIPES:
        raise unknown("--recipe", recipe, RECIPES)
    path = files("qilin_tasks.systems").joinpath("recipes").joinpath(f"{recipe}.yaml")
    systems = yaml.safe_load(path.read_text("utf-8"))["systems"]
    if DCN not in systems:
        raise SettingError(
            f"--recipe {recipe}: the official DCN-V2 also reads BERT vectors of query and note, which are not made "
            "here; use --recipe ours"
        )
    given = {**systems[DCN]["all"], **{key: value for key, value in changes.items() if value is not None}}
    return DcnSettings(**{**given, "hidden": tuple(given["hidden"])}, seed=seed)


def train_dcn_into(
    out: Path, source: QilinSource, config: str, settings: DcnSettings, *, rows: int | None, progress: bool = False
) -> Path:
    """Trains on a config and puts the folder `out` in place; the same call goes on after the last whole pass.

    SettingError where `out` is there already, and what `train_dcn` raises.
    """
    if config not in TRAINING_CONFIGS:
        raise unknown("--config", config, TRAINING_CONFIGS)
    if out.exists():
        raise SettingError(f"--out {str(out)!r}: is there already; choose another folder")
    made = {
        "system": DCN,
        "config": config,
        "recipe": asdict(settings),
        "rows": rows,
        "data": [source.fingerprint(name) for name in (config, "notes", "user_feat")],
        "code": __version__,
    }
    with locked(out):
        folder = open_work(out, made)
        model = train_dcn(source, config, settings, rows=rows, checkpoint=folder / "state.pt", progress=progress)
        place = folder / "model"
        place.mkdir(exist_ok=True)
        model.save(place)
        write_whole(place / "training.json", json.dumps(made, ensure_ascii=False, indent=1))
        out.parent.mkdir(parents=True, exist_ok=True)
        put_folder(place, out)
        close_work(out)
    return out
