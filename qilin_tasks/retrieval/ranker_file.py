"""Trained rankers on disk: arrays and the recipe of their training in one file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.files import write_whole
from qilin_tasks.retrieval.mrrank import RankNet
from qilin_tasks.retrieval.routing import Router

KINDS: dict[str, type[RankNet | Router]] = {"mrrank": RankNet, "routing": Router}


@dataclasses.dataclass(frozen=True)
class LoadedRanker:
    """A trained model, how it was trained, and a signature that changes with any of it."""

    model: RankNet | Router
    signature: str
    recipe: Mapping[str, Any]

    def rank(self, rankings: Sequence[Sequence[tuple[Any, float]]], *, k: int) -> list[tuple[Any, float]]:
        """The `k` best documents of the pool, best first."""
        return self.model.rank(rankings, k=k)


def save_ranker(path: Path, model: RankNet | Router, *, recipe: Mapping[str, Any]) -> None:
    """Writes a trained model, whole or not at all; the same model and recipe give the same bytes."""
    kind = next(name for name, known in KINDS.items() if isinstance(model, known))
    arrays = {field.name: np.asarray(getattr(model, field.name)) for field in dataclasses.fields(model)}
    text = json.dumps({"kind": kind, **recipe}, sort_keys=True, ensure_ascii=False)
    write_whole(path, lambda file: np.savez(file, recipe=np.array(text), **arrays))  # type: ignore[arg-type]


def load_ranker(path: Path, *, kind: str) -> LoadedRanker:
    """A model of `save_ranker`. DataError for a file that isn't one, or of another kind."""
    if kind not in KINDS:
        raise unknown("ranker", kind, KINDS)
    try:
        with np.load(path, allow_pickle=False) as stored:
            recipe = json.loads(str(stored["recipe"]))
            if recipe.get("kind") != kind:
                raise DataError(f"{path}: a ranker of kind {recipe.get('kind')!r}, asked for {kind!r}")
            fields = dataclasses.fields(KINDS[kind])
            # Files of before `main` lack it: its default is what they were trained with.
            arrays = {
                field.name: stored[field.name]
                for field in fields
                if field.name in stored or field.default is dataclasses.MISSING
            }
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a ranker of `qilin-tasks mrrank` ({error})") from error
    arrays |= {name: int(arrays[name]) for name in ("depth", "main") if name in arrays}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return LoadedRanker(KINDS[kind](**arrays), signature=f"{kind}:{digest}", recipe=recipe)
