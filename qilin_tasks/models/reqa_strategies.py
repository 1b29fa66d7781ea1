"""What the baseline model answers to ReQA's documents: the first stage, chance, the ceiling, and a constant."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from qilin_tasks.errors import SettingError
from qilin_tasks.models.ranking_strategies import Order, constant, first_stage, oracle
from qilin_tasks.models.ranking_strategies import random as chance
from qilin_tasks.models.strategies import Strategy
from qilin_tasks.parsing.rankings import render_ranking

Document = Mapping[str, Any]


def is_reqa(doc: Document) -> bool:
    """Whether a document is one of ReQA's: only those carry a paragraph and its language."""
    return "paragraph" in doc and "language" in doc


def _first(texts: list[str]) -> str:
    return texts[0] if texts else ""


def _drawn(doc: Document) -> str:
    return str(random.Random(f"random|{doc['doc_key']}").choice(doc["passages"] or [""]))  # noqa: S311


# A sentence of the whole pool: the first stage's query is the question itself.
_SENTENCES: dict[str, Callable[[Document], str]] = {
    "first_stage": lambda doc: str(doc["question"]),
    "random": lambda doc: str(doc["random_sentence"]),
    "oracle": lambda doc: str(doc["gold_sentence"]),
    "constant": lambda doc: "",
}
_ANSWERS: dict[str, Callable[[Document], str]] = {
    "first_stage": lambda doc: _first(doc["passages"]),
    "random": _drawn,
    "oracle": lambda doc: _first(doc["answers"]),
    "constant": lambda doc: "",
}
_RANKERS: dict[str, Order] = {
    "first_stage": first_stage,
    "random": chance,
    "oracle": oracle,
    "constant": constant,
}


def _strategy(name: str) -> Strategy:
    def generate(doc: Document) -> str:
        if "candidates" in doc:
            return render_ranking(_RANKERS[name](doc))
        return _SENTENCES[name](doc) if "gold_sentence" in doc else _ANSWERS[name](doc)

    def loglikelihood(doc: Document, number: int) -> float:
        """Of the whole scored text, so that dividing by its length keeps the order."""
        if name == "constant":
            return 0.0
        rank = list(_RANKERS[name](doc)).index(number + 1) + 1
        scored = doc["question"] if doc["direction"] == "question" else doc["candidates"][number]
        return -float(rank * max(len(scored.encode("utf-8", "replace")), 1))

    return Strategy(generate, loglikelihood)


REQA_STRATEGIES: dict[str, Strategy] = {name: _strategy(name) for name in _RANKERS}


def with_reqa(table: Mapping[str, Strategy]) -> dict[str, Strategy]:
    """`table` with ReQA's strategies; where both know a name, the document decides which of them answers."""
    merged = dict(table)
    for name, ours in REQA_STRATEGIES.items():
        merged[name] = _either(name, ours, table.get(name, Strategy(None)))
    return merged


def _either(name: str, ours: Strategy, theirs: Strategy) -> Strategy:
    def pick(doc: Document, kind: str) -> Callable[..., Any]:
        function: Callable[..., Any] | None = getattr(ours if is_reqa(doc) else theirs, kind)
        if function is None:
            raise SettingError(
                f"strategy {name!r} has no answer to document {doc.get('doc_key')!r}: choose another one"
            )
        return function

    def generate(doc: Document) -> str:
        return str(pick(doc, "generate")(doc))

    def loglikelihood(doc: Document, number: int) -> float:
        return float(pick(doc, "loglikelihood")(doc, number))

    return Strategy(generate, loglikelihood)
