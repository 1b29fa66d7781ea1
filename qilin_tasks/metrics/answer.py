"""Plain facts about an answer, as per-document values whose mean is the reported length or rate."""

from __future__ import annotations

from collections.abc import Sequence

from qilin_tasks.text.tokens import clean


def answer_chars(answers: Sequence[str | None]) -> list[float]:
    """Length of each answer in characters (code points), without outer white space."""
    return [float(len(clean(answer).strip())) for answer in answers]


def empty_rate(answers: Sequence[str | None]) -> list[float]:
    """1.0 for each answer that holds nothing but white space, else 0.0."""
    return [float(not clean(answer).strip()) for answer in answers]


def unfinished_reasoning_rate(unfinished: Sequence[bool]) -> list[float]:
    """1.0 for each answer whose reasoning was never closed, else 0.0."""
    return [float(flag) for flag in unfinished]
