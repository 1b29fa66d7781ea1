"""Settings of the tasks with chosen evidence, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qilin_tasks.dqa.settings import ANSWERS
from qilin_tasks.errors import SettingError
from qilin_tasks.metrics.answer_batch import BertScoreSettings

PLACES = ("first", "middle", "last", "shuffled")


@dataclass(frozen=True)
class EvidenceSettings(BertScoreSettings):
    """`notes` shown, the share `distractors` of them not cited; `place` is where the cited ones stand."""

    contexts: str | None
    notes: int
    distractors: float
    place: str
    seed: int
    note_chars: int
    context_chars: int
    answers: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "place": PLACES,
        "answers": ANSWERS,
        **BertScoreSettings.CHOICES,
    }
    MINIMUM: ClassVar[Mapping[str, int]] = {
        "notes": 1,
        "distractors": 0,
        "note_chars": 20,
        "context_chars": 20,
        **BertScoreSettings.MINIMUM,
    }

    def __post_init__(self) -> None:
        if not 0 <= self.distractors <= 1:
            raise SettingError(f"distractors {self.distractors!r}: must be a share from 0 to 1")

    @property
    def cited(self) -> int:
        """How many of the notes are cited ones: at least one, unless all are distractors."""
        wanted = self.notes - int(self.notes * self.distractors + 0.5)
        return 0 if self.distractors == 1 else max(wanted, 1)

    @property
    def ranking_part(self) -> str:
        """Whose best are the distractors, in the signature: the release's BM25, or a run by retriever and digest."""
        if self.contexts is None:
            return "bm25"
        from qilin_tasks.retrieval.run_file import signed

        return signed(self.contexts)
