"""Baselines of `qilin_dqa_*`: the first sentences of what is shown, the gold answer, nothing."""

from __future__ import annotations

from qilin_tasks.strategy import EMPTY, Document, Strategy, lead_of


def lead(doc: Document) -> str:
    """LEAD-5 of the shown notes."""
    return lead_of(note["content"] or note["title"] for note in doc["notes"])


def reference(doc: Document) -> str:
    """The gold answer: the ceiling."""
    return str(doc["reference"])


BASELINES: dict[str, Strategy] = {"lead": Strategy(lead), "reference": Strategy(reference), "empty": EMPTY}
