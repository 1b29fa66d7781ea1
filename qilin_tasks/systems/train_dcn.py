"""DCN-V2 trained into a folder: the recipe's settings, saved after every pass, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from qilin_tasks import __version__
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.files import locked
from qilin_tasks.retrieval.workspace import open_work
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.systems.dcn_v2 import DcnSettings, train_dcn
from qilin_tasks.systems.model_folder import check_new, put_model
from qilin_tasks.systems.recipe import TRAINING_CONFIGS, read_recipe

DCN = "dcn-v2"


def dcn_settings(recipe: str, *, seed: int, changes: Mapping[str, int | float | None]) -> DcnSettings:
    """The recipe's settings with changes (None: none). SettingError for a recipe that there is none of."""
    systems = read_recipe(recipe)["systems"]
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
    check_new(out)
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
        put_model(out, model, made, work=folder)
    return out
