"""Two models' answers to the same document against each other, shown in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from qilin_tasks.judge.answers import Answer
from qilin_tasks.judge.asking import Ask
from qilin_tasks.judge.judged import Judged
from qilin_tasks.judge.prompts import Prompts
from qilin_tasks.judge.readings import MIRROR, PAIR, read_pair

MAIN = "win_rate"
LONGEST = 32

Pair = tuple[Answer, Answer]


def model_pairs(answers: Sequence[Answer]) -> list[Pair]:
    """Every two models' answers to the same document of the same task."""
    by_document: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        by_document.setdefault((answer.task, str(answer.key)), []).append(answer)
    return [pair for there in by_document.values() for pair in combinations(there, 2)]


def judge_pairs(pairs: Sequence[Pair], ask: Ask, prompts: Prompts, *, repeats: int) -> list[Judged]:
    """Every pair in both orders; answers that are equal tie, and nobody is asked."""
    different = [(a, b) for a, b in pairs if a.text.strip() != b.text.strip()]
    asked = [
        prompts.fill("pair", question=first.question, reference=first.reference, first=first.text, second=second.text)
        for a, b in different
        for first, second in ((a, b), (b, a))
    ]
    told = iter(ask(asked, repeats=repeats, longest=LONGEST))
    judged = []
    for a, b in pairs:
        if a.text.strip() == b.text.strip():
            texts: list[list[str | None]] = [[] for _ in range(repeats)]
            orders: list[tuple[str | None, str | None]] = [("tie", "tie")] * repeats
        else:
            ab, ba = next(told), next(told)
            texts = [[ab[repeat], ba[repeat]] for repeat in range(repeats)]
            orders = [(read_pair(ab[repeat]), read_pair(ba[repeat])) for repeat in range(repeats)]
        verdicts = [[verdict_of(*order)] for order in orders]
        values = [values_of(*order) for order in orders]
        judged.append(Judged(a.task, str(a.key), (a.model, b.model), a.cluster, verdicts, values, texts))
    return judged


def verdict_of(forward: str | None, backward: str | None) -> str | None:
    """For the first of both: what both orders say, a tie where they contradict, None where one is missing."""
    if forward is None or backward is None:
        return None
    return forward if forward == MIRROR[backward] else "tie"


def values_of(forward: str | None, backward: str | None) -> dict[str, float] | None:
    """The pair's values; `first_shown_preferred` is .5 for a judge that does not care for the order."""
    verdict = verdict_of(forward, backward)
    if forward is None or backward is None or verdict is None:
        return None
    return {
        MAIN: PAIR[verdict],
        "wins": float(verdict == "first"),
        "ties": float(verdict == "tie"),
        "losses": float(verdict == "second"),
        "position_inconsistency": float(forward != MIRROR[backward]),
        "first_shown_preferred": (PAIR[forward] + PAIR[backward]) / 2,
    }
