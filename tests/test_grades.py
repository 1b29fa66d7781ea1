"""Grades that a model writes of one note: what is read, what is none, and that nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.parsing.grades import parse_grade


@pytest.mark.parametrize(
    ("text", "value", "valid"),
    [
        ("85", 85, True),
        (" 85分。\n", 85, True),
        ("８５", 85, True),
        ("72.5", 72.5, True),
        ("0", 0, True),
        ("100", 100, True),
        ("相关程度：60", 60, False),
        ("85/100", 85, False),
        ("<think>大概90</think>30", 30, True),
        ("<think>大概90", None, False),
        ("101", None, False),
        ("-5", None, False),
        ("不相关", None, False),
        ("", None, False),
        (None, None, False),
        ("9" * 500, None, False),
    ],
)
def test_the_first_number_is_the_grade(text: str | None, value: float | None, valid: bool) -> None:
    grade = parse_grade(text)
    assert (grade.value, grade.valid) == (value, valid)


def test_what_was_written_is_told_apart_from_nothing() -> None:
    assert parse_grade("101").out_of_range and not parse_grade("").out_of_range
    assert parse_grade("<think>90").unfinished and not parse_grade("90").unfinished


@given(st.text())
def test_no_text_raises_and_a_grade_is_in_range(text: str) -> None:
    grade = parse_grade(text)
    assert grade.value is None or 0 <= grade.value <= 100
    assert not (grade.valid and grade.value is None)


@given(st.integers(0, 100))
def test_every_grade_is_read_as_itself(number: int) -> None:
    assert parse_grade(str(number)).value == number
