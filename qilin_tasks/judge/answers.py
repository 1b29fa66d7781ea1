"""Stored answers: the samples of results folders whose tasks ask a question, have a reference and get a text."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.results.reader import Sample, TaskResult, find_results, iter_samples
from qilin_tasks.results.scores import cluster_of
from qilin_tasks.signature import digest

_QUESTIONS = ("query", "question")
_REFERENCES = ("reference", "answers")


@dataclass(frozen=True)
class Answer:
    """One model's answer to a document; `item` names the question and reference, whatever task asked it.

    `cluster` is what depends on each other (a paragraph's questions, or one question under two conditions); `cut` says
    that the text was longer than a judge is shown.
    """

    task: str
    model: str
    key: int | str
    item: str
    cluster: Hashable
    question: str
    reference: str
    text: str
    cut: bool


def stored_answers(
    runs: Sequence[Path], *, tasks: Collection[str], models: Collection[str], most_chars: int
) -> list[Answer]:
    """Every stored answer of the tasks and models that are named (all where none is), sorted by task, model and key.

    Raises SettingError for a name that no result has, DataError where nothing is left to judge.
    """
    results = find_results(runs)
    for kind, named, there in (
        ("--tasks", tasks, {result.task for result in results}),
        ("--models", models, {result.model for result in results}),
    ):
        for name in named:
            if name not in there:
                raise unknown(kind, name, there)
    chosen = [r for r in results if (not tasks or r.task in tasks) and (not models or r.model in models)]
    answers = [answer for result in chosen for answer in _of_result(result, most_chars=most_chars)]
    if not answers:
        raise DataError(
            f"no answers to judge below {', '.join(map(str, runs))}: a document needs a question "
            f"({' or '.join(_QUESTIONS)}), a reference ({' or '.join(_REFERENCES)}) and one written answer"
        )
    return sorted(answers, key=lambda answer: (answer.task, answer.model, str(answer.key)))


def _of_result(result: TaskResult, *, most_chars: int) -> Iterator[Answer]:
    # A task with several filters has a line of each for a document: the first counts.
    seen: set[int | str] = set()
    for sample in iter_samples(result):
        answer = _answer(result, sample, most_chars)
        if answer is not None and sample.key not in seen:
            seen.add(sample.key)
            yield answer


def _answer(result: TaskResult, sample: Sample, most_chars: int) -> Answer | None:
    # Several requests a document are windows or choices, and numbers are log-likelihoods.
    if len(sample.responses) != 1 or not isinstance(sample.filtered[0], str):
        return None
    question = next((sample.doc[name] for name in _QUESTIONS if isinstance(sample.doc.get(name), str)), "")
    reference = _reference(sample.doc)
    if not question or not reference:
        return None
    text = sample.filtered[0]
    item = digest([question, reference])
    return Answer(
        result.task,
        result.model,
        sample.key,
        item,
        cluster_of(sample) or item,
        question,
        reference,
        text[:most_chars],
        len(text) > most_chars,
    )


def _reference(doc: Mapping[str, Any]) -> str:
    """The reference; of several the first, for they say the same."""
    found = next((doc[name] for name in _REFERENCES if doc.get(name)), "")
    if isinstance(found, list):
        found = found[0]
    return found if isinstance(found, str) else ""


def sampled(answers: Sequence[Answer], *, limit: int | None, kept: Collection[tuple[str, str]]) -> list[Answer]:
    """The answers of `limit` documents of each task, drawn by their content; those of `kept` (task, key) come first."""
    if limit is None:
        return list(answers)
    ranks: dict[str, set[tuple[bool, str, str]]] = {}
    for answer in answers:
        key = str(answer.key)
        ranks.setdefault(answer.task, set()).add(((answer.task, key) not in kept, digest([answer.item, key]), key))
    chosen = {(task, key) for task, ranked in ranks.items() for _, _, key in sorted(ranked)[:limit]}
    return [answer for answer in answers if (answer.task, str(answer.key)) in chosen]
