"""Exact match and F1: the official normalisation in a table, and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.metrics.squad import exact_match, normalize_answer, token_f1
from qilin_tasks.text.tokens import tokenize_chars


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("The  Cat!", "cat"),
        ("a U.S. an", "us"),
        ("Theatre", "theatre"),
        ("the-end", "theend"),
        ("“Ann”", "“ann”"),
        ("", ""),
    ],
)
def test_normalisation(text: str, normalised: str) -> None:
    assert normalize_answer(text) == normalised


@pytest.mark.parametrize(
    ("hypothesis", "references", "em", "f1"),
    [
        ("The Broncos.", ["Denver Broncos", "broncos"], 1.0, 1.0),
        ("Denver", ["Denver Broncos"], 0.0, 2 / 3),
        ("the cat sat sat", ["cat sat"], 0.0, 0.8),
        ("dog", ["cat"], 0.0, 0.0),
        ("the", ["an"], 1.0, 0.0),  # both are empty after normalisation; the official F1 has no common token then
        ("", ["cat"], 0.0, 0.0),
    ],
)
def test_table(hypothesis: str, references: list[str], em: float, f1: float) -> None:
    assert exact_match(hypothesis, references) == em
    assert token_f1(hypothesis, references) == pytest.approx(f1)


def test_chinese_needs_another_tokenizer() -> None:
    assert token_f1("大约三百年前", ["大约三百年"]) == 0.0
    assert token_f1("大约三百年前", ["大约三百年"], tokenizer=tokenize_chars) == pytest.approx(10 / 11)


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_range_identity_and_order(hypothesis: str, references: list[str]) -> None:
    for tokenizer in (str.split, tokenize_chars):
        value = token_f1(hypothesis, references, tokenizer=tokenizer)
        assert 0.0 <= value <= 1.0
        assert value == token_f1(hypothesis, references[::-1], tokenizer=tokenizer)
    assert exact_match(hypothesis, [*references, hypothesis]) == 1.0
    if exact_match(hypothesis, references) and normalize_answer(hypothesis).split():
        assert token_f1(hypothesis, references) == 1.0
