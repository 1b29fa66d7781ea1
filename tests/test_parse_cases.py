"""Outputs that were once read wrongly, with the values given there, and rankings inside generated noise."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.noisy_rankings import noisy_rankings

from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.prompts import whole_response
from qilin_tasks.parsing.rankings import parse_ranking
from qilin_tasks.parsing.simple_ranking import simple_ranking


def cases(shared: Path, name: str) -> list[dict[str, Any]]:
    lines = (shared / "cases" / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def test_rankings_of_the_collection(shared: Path) -> None:
    seen = cases(shared, "rankings.jsonl")
    assert len(seen) >= 9
    for case in seen:
        ranking = parse_ranking(case["text"], n=case["n"])
        assert (list(ranking.ids), ranking.valid) == (case["ids"], case["valid"]), case["kind"]


def test_reasoning_of_the_collection(shared: Path) -> None:
    seen = cases(shared, "reasoning.jsonl")
    assert len(seen) >= 9
    for case in seen:
        answer = strip_reasoning(whole_response(case["prompt_ends"], case["text"]))
        assert (answer.text, answer.unfinished) == (case["answer"], case["unfinished"]), case["kind"]


SIBLINGS = [
    ("【2】→【3】→【1】\n\n1. 【1】 无关\n2. 【2】 最好", [2, 3, 1]),
    ("**[2] > [3] > [1]**\n理由：[1]没有提到，[2]说得最清楚，[3]一般。", [2, 3, 1]),
    ("Final ranking: [2] > [3] > [1].\nWhy: 1) [1] is vague. 2) [2] is exact.", [2, 3, 1]),
    ("```json\n[2, 3, 1]\n```", [2, 3, 1]),
    ("```\n[2] > [3] > [1]\n```", [2, 3, 1]),
    ("[２] ＞ [３] ＞ [１]", [2, 3, 1]),
    ("[२] > [३] > [१]", [2, 3, 1]),
    ("[๒] > [๓] > [๑]", [2, 3, 1]),
    ("[2]、[3]、[1]", [2, 3, 1]),
    ('{"1": 3, "2": 1, "3": 2}', [2, 3, 1]),
    ('[{"id": 1, "rank": 3}, {"id": 2, "rank": 1}, {"id": 3, "rank": 2}]', [2, 3, 1]),
    ("| rank | note |\n|---|---|\n| 1 | [2] |\n| 2 | [3] |\n| 3 | [1] |", [2, 3, 1]),
    ("1. [2]\n2. [3]\n3. [1]", [2, 3, 1]),
    ("排序结果：1. [2]\n2. [3]\n3. [1]。", [2, 3, 1]),
    ("[2] > [3] > [1]\n(The order shown was [1] > [2] > [3].)", [2, 3, 1]),
]


@pytest.mark.parametrize(("text", "ids"), SIBLINGS)
def test_siblings(text: str, ids: list[int]) -> None:
    ranking = parse_ranking(text, n=3)
    assert (list(ranking.ids), ranking.valid) == (ids, True)


def test_a_ranking_is_found_in_generated_noise() -> None:
    """At least 99.5 % of 4,000 rankings; benchmarks/ranking_noise.py reads 20,000."""
    drawn = islice(noisy_rankings(seed=11), 4_000)
    found = sum(list(parse_ranking(text, n=len(ids)).ids) == ids for text, ids in drawn)
    assert found >= 0.995 * 4_000, found


def test_the_simple_rule_takes_all_numbers_in_order() -> None:
    assert list(simple_ranking("20 passages: [3] > [1] > [3] > [9]", n=3)) == [3, 1]
