"""Whether a judge can be trusted: what it must pass, from questions whose verdict is known, repeats and people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from qilin_tasks.judge.answers import Answer
from qilin_tasks.judge.judged import Judged
from qilin_tasks.judge.pairs import MAIN as WIN_RATE
from qilin_tasks.judge.pairs import Pair
from qilin_tasks.signature import digest

#: How many references are judged as answers of their own question and of another's.
CONTROLS = 50
OWN, OTHER = "the reference", "another question's reference"


@dataclass(frozen=True)
class Bound:
    """What a check's value must reach (`least`), or must not pass."""

    about: str
    limit: float
    least: bool


#: Kappa: Landis & Koch's "moderate" begins at .4, "substantial" at .6. Inconsistency: GPT-4's in MT-bench (Zheng et
#: al. 2023) was .35. The rest is ours.
BOUNDS: dict[str, Bound] = {
    "failed": Bound("verdicts that could not be read", 0.05, least=False),
    "without_nuggets": Bound("references whose nuggets could not be read", 0.05, least=False),
    "controls": Bound(f"{OWN} judged better than {OTHER}", 0.9, least=True),
    "inconsistent": Bound("verdicts that change with the order of the answers", 0.35, least=False),
    "itself_kappa": Bound("kappa with itself over repeats", 0.6, least=True),
    "itself_spearman": Bound("Spearman with itself over repeats", 0.6, least=True),
    "people_kappa": Bound("kappa with people", 0.4, least=True),
    "people_spearman": Bound("Spearman with people", 0.4, least=True),
}


class Check(TypedDict):
    """One of BOUNDS; a `value` of None could not be computed, which is no pass."""

    name: str
    about: str
    value: float | None
    limit: float
    least: bool
    passed: bool


def check(name: str, value: float | None) -> Check:
    """Hold a value against its bound."""
    bound = BOUNDS[name]
    passed = value is not None and (value >= bound.limit if bound.least else value <= bound.limit)
    return {
        "name": name,
        "about": bound.about,
        "value": value,
        "limit": bound.limit,
        "least": bound.least,
        "passed": passed,
    }


def control_answers(answers: Sequence[Answer]) -> list[Pair]:
    """References as answers: to their own question, and that of another question to it; drawn by their content."""
    items = {answer.item: answer for answer in answers}
    drawn = sorted(items.values(), key=lambda answer: digest(["control", answer.item]))[:CONTROLS]
    return [
        (replace(one, model=OWN, text=one.reference), replace(one, model=OTHER, text=other.reference))
        for one, other in zip(drawn, [*drawn[1:], *drawn[:1]], strict=True)
        if one.reference != other.reference
    ]


def control_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """As `control_answers`, from the questions of pairs."""
    return control_answers([first for first, _ in pairs])


def share_above(judged: Sequence[Judged], name: str) -> float | None:
    """Among all (own, other) answers that were read: how often the own one has the higher value, ties by half."""
    values = {
        model: [v for one in judged if one.models == (model,) and (v := one.value(name)) is not None]
        for model in (OWN, OTHER)
    }
    pairs = [(own > other) + 0.5 * (own == other) for own in values[OWN] for other in values[OTHER]]
    return sum(pairs) / len(pairs) if pairs else None


def share_won(judged: Sequence[Judged]) -> float | None:
    """The mean win rate of the own reference; None where no pair was read."""
    values = [value for one in judged if (value := one.value(WIN_RATE)) is not None]
    return sum(values) / len(values) if values else None
