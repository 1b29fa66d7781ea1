"""What the baseline model answers to ranking tasks: chance, first stage, ceiling, and a ranker that has no opinion."""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qilin_tasks.errors import SettingError
from qilin_tasks.models.strategies import Strategy
from qilin_tasks.parsing.rankings import render_ranking

Document = Mapping[str, Any]
Order = Callable[[Document], Sequence[int]]
"""All candidates of a document, ids from 1, best first."""


def first_stage(doc: Document) -> Sequence[int]:
    """The order of the first stage: for Qilin, BM25 over characters within the list, as Table 10's."""
    return list(doc["first_stage"])


def oracle(doc: Document) -> Sequence[int]:
    """The relevant candidates first, both parts in shown order."""
    relevant = set(doc["relevant"])
    return sorted(range(1, len(doc["candidates"]) + 1), key=lambda i: i not in relevant)


def random(doc: Document) -> Sequence[int]:
    """An order drawn by the document's key, the same in every window."""
    order = list(range(1, len(doc["candidates"]) + 1))
    random_module.Random(f"random|{doc['doc_key']}").shuffle(order)  # noqa: S311
    return order


def constant(doc: Document) -> Sequence[int]:
    """The shown order, and one score for all: what a model without an opinion must get no more than chance for."""
    return range(1, len(doc["candidates"]) + 1)


def _writes(order: Order) -> Callable[[Document], str]:
    def generate(doc: Document) -> str:
        _check(doc)
        shown = list(doc.get("window") or range(1, len(doc["candidates"]) + 1))
        place = {candidate: number for number, candidate in enumerate(shown, start=1)}
        return render_ranking(place[i] for i in order(doc) if i in place)

    return generate


def _scores(order: Order) -> Callable[[Document, int], float]:
    """Request i < n scores candidate i + 1 (its yes); requests from n on (its no) are all the same."""

    def loglikelihood(doc: Document, idx: int) -> float:
        _check(doc)
        if idx >= len(doc["candidates"]) or order is constant:
            return -1.0
        return -1.0 - list(order(doc)).index(idx + 1)

    return loglikelihood


def _check(doc: Document) -> None:
    if "candidates" not in doc:
        raise SettingError(
            "this strategy ranks candidates, and the task's documents have none: try 'reference' or 'lead'"
        )


RANKING_STRATEGIES: dict[str, Strategy] = {
    order.__name__: Strategy(_writes(order), _scores(order)) for order in (first_stage, oracle, random, constant)
}
