"""Answers held against the nuggets of their references, one nugget a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qilin_tasks.judge.answers import Answer
from qilin_tasks.judge.asking import Ask
from qilin_tasks.judge.judged import Judged
from qilin_tasks.judge.prompts import Prompts
from qilin_tasks.judge.readings import SUPPORT, Nugget, read_support

MAIN = "nuggets_all"
#: Tokens that a verdict may take.
LONGEST = 32


def judge_nuggets(
    answers: Sequence[Answer], nuggets: Mapping[str, Sequence[Nugget]], ask: Ask, prompts: Prompts, *, repeats: int
) -> list[Judged]:
    """Every answer whose reference has nuggets; an empty answer supports none, and nobody is asked."""
    chosen = [answer for answer in answers if answer.item in nuggets]
    asked = [
        prompts.fill("support", question=answer.question, answer=answer.text, nugget=nugget.text)
        for answer in chosen
        if answer.text.strip()
        for nugget in nuggets[answer.item]
    ]
    told = iter(ask(asked, repeats=repeats, longest=LONGEST))
    return [_judged(answer, nuggets[answer.item], told, repeats=repeats) for answer in chosen]


def _judged(answer: Answer, nuggets: Sequence[Nugget], told: Iterator[list[str | None]], *, repeats: int) -> Judged:
    if answer.text.strip():
        columns = [next(told) for _ in nuggets]
        texts = [[column[repeat] for column in columns] for repeat in range(repeats)]
        verdicts = [[read_support(text) for text in row] for row in texts]
    else:
        texts, verdicts = [[] for _ in range(repeats)], [["not" for _ in nuggets] for _ in range(repeats)]
    values = [values_of(row, nuggets) for row in verdicts]
    return Judged(answer.task, str(answer.key), (answer.model,), answer.cluster, verdicts, values, texts)


def values_of(verdicts: Sequence[str | None], nuggets: Sequence[Nugget]) -> dict[str, float] | None:
    """The answer's values, each from 0 to 1; those of vital nuggets only where there are any.

    `nuggets_all` counts a partly supported nugget by half, `nuggets_vital_strict` not at all. None where a verdict is.
    """
    read = [verdict for verdict in verdicts if verdict is not None]
    if len(read) < len(verdicts):
        return None
    counts = [SUPPORT[verdict] for verdict in read]
    values = {MAIN: sum(counts) / len(counts)}
    vital = [count for count, nugget in zip(counts, nuggets, strict=True) if nugget.vital]
    if vital:
        values["nuggets_vital"] = sum(vital) / len(vital)
        values["nuggets_vital_strict"] = sum(count == 1 for count in vital) / len(vital)
    return values
