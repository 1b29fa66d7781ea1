"""DCN-V2's probability of a click, as a system of `rank`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from qilin_tasks.errors import SettingError
from qilin_tasks.systems.dcn_features import read_impressions
from qilin_tasks.systems.dcn_v2 import FILES, load_dcn
from qilin_tasks.systems.system import Exposed, SystemSettings


class DcnRanker:
    """Scores every shown note at the first call: its features need one pass over the notes, not one a piece."""

    reads_notes: ClassVar[bool] = False
    needs: ClassVar[str | None] = "model"

    def __init__(self, settings: SystemSettings) -> None:
        if settings.source is None or settings.config is None:
            raise SettingError("DCN-V2 reads features of users and requests: give SystemSettings a source and a config")
        folder = Path(str(settings.model))
        self._model = load_dcn(folder)
        self._source = settings.source
        # Read now, so that missing features are named before anything is ranked.
        self._shown = read_impressions(settings.source, settings.config, limit=settings.rows)
        digest = hashlib.sha256()
        for name in FILES:
            digest.update((folder / name).read_bytes())
        self._recipe: dict[str, str | int] = {"model": f"{folder.name}@{digest.hexdigest()[:12]}"}
        self._scores: dict[tuple[int, int], float] | None = None

    def recipe(self) -> Mapping[str, str | int]:
        return self._recipe

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        if self._scores is None:
            pairs = zip(self._shown.rows.tolist(), self._shown.notes.tolist(), strict=True)
            self._scores = dict(zip(pairs, self._model.predict(self._source, self._shown).tolist(), strict=True))
        return [[self._scores.get((one.row, note)) for note in one.candidates] for one in requests]
