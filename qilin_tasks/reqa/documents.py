"""Pools to the documents that the ReQA tasks ask about, the same for every way of loading them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypedDict

from qilin_tasks.reqa.pools import Pool, PoolQuestion
from qilin_tasks.reqa.retrieval import first_stage
from qilin_tasks.reqa.settings import CandidateSettings, GenerateSettings, LikelihoodSettings, ReaderSettings
from qilin_tasks.text.notes import one_line, trim


class ReQADocument(TypedDict):
    """A question, and where its answers are: `paragraph` is the gold one, `documents` all that hold an answer."""

    doc_key: str
    language: str
    question: str
    paragraph: int
    documents: list[int]
    answers: list[str]


class ListwiseDocument(ReQADocument):
    """`relevant` and `first_stage` are 1-based ids of the shown candidates, `owners` their paragraphs."""

    candidates: list[str]
    owners: list[int]
    relevant: list[int]
    first_stage: list[int]
    candidates_trimmed: int


class LikelihoodDocument(ListwiseDocument):
    """`direction` is what the prompt reads."""

    direction: str


class GenerateDocument(ReQADocument):
    """`gold` are pool positions; the sentences serve the baselines."""

    gold: list[int]
    gold_sentence: str
    random_sentence: str


class ReaderDocument(ReQADocument):
    """`passages` as the prompt shows them, best first; `answer_shown` is 1 where one holds the answer."""

    passages: list[str]
    answer_shown: float


# What stands for the candidate in a likelihood prompt until the requests are made, one for each candidate.
CANDIDATE_MARK = "<<candidate>>"


def listwise_documents(settings: CandidateSettings) -> list[dict[str, Any]]:
    """Documents with shuffled candidates: `relevant` and `first_stage` are 1-based ids of the shown candidates."""
    pool = settings.pool()
    found = first_stage(settings.first_stage, pool, settings, k=settings.top_k)
    return [
        _with_candidates(question, ranked, pool, settings)
        for question, ranked in zip(pool.questions, found, strict=True)
    ]


def likelihood_documents(settings: LikelihoodSettings) -> list[dict[str, Any]]:
    """Listwise documents, with the direction that the prompt reads."""
    return [{**doc, "direction": settings.direction} for doc in listwise_documents(settings)]


def _with_candidates(
    question: PoolQuestion, ranked: Sequence[int], pool: Pool, settings: CandidateSettings
) -> dict[str, Any]:
    order = list(ranked)
    random.Random(f"{settings.shuffle_seed}|{pool.name}|{question.key}").shuffle(order)  # noqa: S311
    gold = set(question.gold)
    ids = {position: number for number, position in enumerate(order, start=1)}
    texts = [one_line(pool.candidates[position]) for position in order]
    return {
        **_base(question, pool),
        "candidates": [trim(text, settings.candidate_chars) for text in texts],
        "owners": [pool.owners[position] for position in order],
        "relevant": [number for number, position in enumerate(order, start=1) if position in gold],
        "first_stage": [ids[position] for position in ranked],
        "candidates_trimmed": sum(len(text) > settings.candidate_chars for text in texts),
    }


def generate_documents(settings: GenerateSettings) -> list[dict[str, Any]]:
    """Documents without candidates: `gold` are pool positions; the sentences serve the baselines."""
    pool = settings.pool()
    documents = []
    for question in pool.questions:
        chance = random.Random(f"sentence|{settings.shuffle_seed}|{pool.name}|{question.key}")  # noqa: S311
        documents.append(
            {
                **_base(question, pool),
                "gold": list(question.gold),
                "gold_sentence": pool.candidates[question.sentences[0]],
                "random_sentence": pool.candidates[chance.randrange(len(pool.candidates))],
            }
        )
    return documents


def reader_documents(settings: ReaderSettings) -> list[dict[str, Any]]:
    """Documents of one context: the `passages` that the prompt shows, best first, and the gold answers."""
    pool = settings.pool()
    if settings.context == "na":
        found: Sequence[Sequence[int]] = [()] * len(pool.questions)
    elif settings.context == "oracle":
        found = [question.sentences[: settings.top_k] for question in pool.questions]
    else:
        found = first_stage(settings.context, pool, settings, k=settings.top_k)
    return [
        {
            **_base(question, pool),
            "passages": [trim(one_line(pool.candidates[position]), settings.candidate_chars) for position in positions],
            "answer_shown": float(bool(set(question.gold) & set(positions))),
        }
        for question, positions in zip(pool.questions, found, strict=True)
    ]


def _base(question: PoolQuestion, pool: Pool) -> dict[str, Any]:
    return {
        "doc_key": question.key,
        "language": pool.language,
        "question": one_line(question.text),
        # The gold paragraph: questions about the same one are not independent, so errors are clustered by it.
        "paragraph": question.paragraph,
        "documents": list(question.documents),
        "answers": list(question.answers),
    }
