"""Settings of `qilin_dqa_*`, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qilin_tasks.metrics.answer_batch import BertScoreSettings

CONTEXTS = ("na", "bm25", "bert", "oracle")
ANSWERS = ("all", "engaged")


@dataclass(frozen=True)
class DQASettings(BertScoreSettings):
    """`note_chars` (of a note) and `context_chars` (of all notes) are code points."""

    context: str
    contexts: str | None
    top_k: int
    note_chars: int
    context_chars: int
    answers: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "context": CONTEXTS,
        "answers": ANSWERS,
        **BertScoreSettings.CHOICES,
    }
    MINIMUM: ClassVar[Mapping[str, int]] = {
        "top_k": 1,
        "note_chars": 20,
        "context_chars": 20,
        **BertScoreSettings.MINIMUM,
    }
