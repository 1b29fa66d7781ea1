"""Long texts of one thing through what once was quadratic in them: minutes then, and the test's limit now.

`python benchmarks/odd_text.py` takes the time of every function.
"""

from __future__ import annotations

import pytest

from qilin_tasks.judge.readings import read_nuggets
from qilin_tasks.parsing.citations import Citations, parse_citations
from qilin_tasks.parsing.json_values import json_values
from qilin_tasks.text.notes import trim

LONG = 200_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("stop", "。！？!?.")
def test_stops_without_a_number_behind_them(stop: str) -> None:
    assert parse_citations(stop * LONG) == Citations((), 0, 0)
    assert parse_citations(f"好{stop * LONG}[2]").numbers == (2,)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("sign", "*- •")
def test_signs_without_a_nugget_behind_them(sign: str) -> None:
    assert read_nuggets(sign * LONG) is None
    assert [nugget.text for nugget in read_nuggets(f"{sign * LONG}vital: one") or ()] == ["one"]


@pytest.mark.timeout(60)
def test_flags_are_cut_between_two() -> None:
    assert trim("🇹🇭" * LONG, 2 * LONG - 1) == "🇹🇭" * (LONG - 1) + "…"


@pytest.mark.timeout(60)
def test_words_side_by_side_are_one_value() -> None:
    (found,) = json_values("[" + '"a"' * LONG + "]")
    assert found.value == [" ".join("a" * LONG)]
