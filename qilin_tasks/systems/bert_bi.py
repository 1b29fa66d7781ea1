"""A bi-encoder's dot product of query and note: the paper's BERT_bi."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from qilin_tasks.retrieval.encoders import load_encoder
from qilin_tasks.systems.system import Exposed, SystemSettings

#: Both official configurations.
MAX_LENGTH = 256


class BiEncoder:
    """Every query and every note of the requests is encoded once."""

    reads_notes: ClassVar[bool] = True
    needs: ClassVar[str | None] = "model"

    def __init__(self, settings: SystemSettings) -> None:
        self._encoder = load_encoder(
            str(settings.model),
            backend=settings.backend,
            batch_size=settings.batch_size,
            max_length=settings.max_length or MAX_LENGTH,
            device=settings.device,
        )

    def recipe(self) -> Mapping[str, str | int]:
        made: dict[str, str | int] = json.loads(self._encoder.signature)
        return made

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        held = {note.note_idx: note.text for one in requests for note in one.notes}
        place = {note_idx: number for number, note_idx in enumerate(held)}
        notes = self._encoder.encode(list(held.values()))
        queries = self._encoder.encode([one.query for one in requests], query=True)
        scores = []
        for one, query in zip(requests, queries, strict=True):
            shown = notes[np.array([place[note.note_idx] for note in one.notes], dtype=np.int64)]
            scores.append([*(shown.astype(np.float64) @ query.astype(np.float64)).tolist()])
        return scores
