"""Refusals on labelled answers, and extractive coverage and density in closed form.

`data/refusals.jsonl` holds 304 answers of our own, Chinese and English, half of them refusals. The 100 of split `kept`
were written before any pattern and looked at only as one figure: the first run of the fixed patterns gave 48 of 50
found, 1 false, F1 .970 (204 of `dev`: 1.0). One author wrote answers, labels and patterns.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.metrics.copying import copied, fragments
from qilin_tasks.text.refusals import is_refusal

DATA = [json.loads(line) for line in (Path(__file__).parent / "data" / "refusals.jsonl").open(encoding="utf-8")]


@pytest.mark.parametrize(("split", "answers", "least"), [("dev", 204, 0.98), ("kept", 100, 0.95)])
def test_the_detector_on_labelled_answers(split, answers, least):
    rows = [row for row in DATA if row["split"] == split]
    found = [is_refusal(row["text"]) for row in rows]
    right = sum(said and row["refusal"] for said, row in zip(found, rows, strict=True))
    assert len(rows) == answers
    assert 2 * right / (sum(found) + sum(row["refusal"] for row in rows)) >= least


@given(st.text(st.characters(codec=None, categories=None), max_size=200))
def test_any_text_is_a_refusal_or_not(text):
    assert is_refusal(text) in (True, False)


@pytest.mark.parametrize("answer", [None, "", " \n", "好" * 100_000, "没有" * 50_000, "[" * 100_000])
def test_hostile_answers_are_no_refusals(answer):
    assert is_refusal(answer) is False


@pytest.mark.parametrize(
    ("answer", "sources", "coverage", "density"),
    [
        ("一二三四", ["一二三四"], 1.0, 4.0),
        ("一二三四", ["一二", "三四"], 1.0, (4 + 4) / 4),
        ("一二三四", ["二三"], 2 / 4, 4 / 4),
        ("一二三四", ["四三二一"], 1.0, 4 / 4),
        ("一二九三四", ["一二三四"], 4 / 5, (4 + 4) / 5),
        ("the cat sat", ["a cat sat down"], 2 / 3, 4 / 3),
        ("一二", [], 0.0, 0.0),
        ("", ["一二"], 0.0, 0.0),
        ("一二一二", ["一二"], 1.0, 8 / 4),
        # The later occurrence is the longer one.
        ("一二三", ["一二九", "一二三"], 1.0, 9 / 3),
    ],
)
def test_coverage_and_density(answer, sources, coverage, density):
    assert copied(answer, sources) == pytest.approx((coverage, density))


TEXT = st.text(st.sampled_from("一二三ab "), max_size=20)


def plain(answer: list[str], source: list[str]) -> list[int]:
    """Figure 3 of the paper, as it stands."""
    lengths, i = [], 0
    while i < len(answer):
        best = 0
        for j in range(len(source)):
            length = 0
            while i + length < len(answer) and j + length < len(source) and answer[i + length] == source[j + length]:
                length += 1
            best = max(best, length)
        if best:
            lengths.append(best)
        i += max(best, 1)
    return lengths


@given(TEXT, TEXT)
def test_fragments_are_those_of_the_papers_algorithm(answer, source):
    from qilin_tasks.text.tokens import tokenize_chars

    assert fragments(answer, [source])[0] == plain(tokenize_chars(answer), tokenize_chars(source))


@given(TEXT, st.lists(TEXT, max_size=3))
def test_bounds(answer, sources):
    coverage, density = copied(answer, sources)
    assert 0 <= coverage <= 1
    assert coverage <= density + 1e-12
    assert density <= fragments(answer, sources)[1]
