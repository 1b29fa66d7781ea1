"""A model's grade of one note, from 0 to 100."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from qilin_tasks.parsing.answers import strip_reasoning

LOWEST, HIGHEST = 0, 100
#: Changes with any change of what an answer is read as.
GRADE_RULE = "first-number-1"
# A minus sign belongs to the number only where no range ("0-100") is written.
_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?")
_ONLY = re.compile(r"\s*-?\d+(?:\.\d+)?\s*分?[。.]?\s*")


@dataclass(frozen=True)
class Grade:
    """`value` in 0..100, None where none was written; `valid`: the answer is the number and nothing else.

    `out_of_range`: the first number is no grade; it then counts as none.
    """

    value: float | None
    valid: bool
    out_of_range: bool
    unfinished: bool


def parse_grade(text: str | None) -> Grade:
    """The first number of an answer, behind its reasoning, as a grade; full-width digits are digits. Never raises.

    >>> parse_grade("<think>90?</think>相关程度：８５分")
    Grade(value=85.0, valid=False, out_of_range=False, unfinished=False)
    >>> parse_grade("7").valid, parse_grade("500").value
    (True, None)
    """
    answer = strip_reasoning(text)
    plain = unicodedata.normalize("NFKC", answer.text)
    first = _NUMBER.search(plain)
    number = None if first is None else float(first.group())
    inside = number is not None and LOWEST <= number <= HIGHEST
    return Grade(
        value=number if inside else None,
        valid=inside and _ONLY.fullmatch(plain) is not None,
        out_of_range=number is not None and not inside,
        unfinished=answer.unfinished,
    )
