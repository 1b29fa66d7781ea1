"""Baselines of ReQA: the first stage, chance, the ceiling, and a constant, for each way of asking."""

from __future__ import annotations

import random
from collections.abc import Callable

from qilin_tasks.parsing.rankings import render_ranking
from qilin_tasks.strategy import EMPTY, ORDERS, Document, Order, Strategy, constant, lead_of


def _ranking(order: Order) -> Callable[[Document], str]:
    return lambda doc: render_ranking(order(doc))


def _likelihood(order: Order) -> Callable[[Document, int], float]:
    """Of the whole scored text, so that dividing by its length keeps the order."""

    def loglikelihood(doc: Document, number: int) -> float:
        if order is constant:
            return 0.0
        rank = list(order(doc)).index(number + 1) + 1
        scored = doc["question"] if doc["direction"] == "question" else doc["candidates"][number]
        return -float(rank * max(len(scored.encode("utf-8", "replace")), 1))

    return loglikelihood


def _first(texts: list[str]) -> str:
    return texts[0] if texts else ""


def _drawn(doc: Document) -> str:
    return str(random.Random(f"random|{doc['doc_key']}").choice(doc["passages"] or [""]))  # noqa: S311


LISTWISE: dict[str, Strategy] = {
    **{name: Strategy(_ranking(order)) for name, order in ORDERS.items()},
    "empty": EMPTY,
}
LIKELIHOOD: dict[str, Strategy] = {name: Strategy(None, _likelihood(order)) for name, order in ORDERS.items()}
#: A sentence of the whole pool; the first stage's query is the question itself.
GENERATE: dict[str, Strategy] = {
    "first_stage": Strategy(lambda doc: str(doc["question"])),
    "random": Strategy(lambda doc: str(doc["random_sentence"])),
    "oracle": Strategy(lambda doc: str(doc["gold_sentence"])),
    "constant": EMPTY,
    "empty": EMPTY,
}
READER: dict[str, Strategy] = {
    "first_stage": Strategy(lambda doc: _first(doc["passages"])),
    "lead": Strategy(lambda doc: lead_of(doc["passages"], sentences=1)),
    "random": Strategy(_drawn),
    "oracle": Strategy(lambda doc: _first(doc["answers"])),
    "constant": EMPTY,
    "empty": EMPTY,
}
