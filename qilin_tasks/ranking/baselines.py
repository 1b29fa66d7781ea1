"""Baselines of Qilin's rankings: chance, first stage, ceiling, and a ranker that has no opinion."""

from __future__ import annotations

from collections.abc import Callable

from qilin_tasks.parsing.rankings import render_ranking
from qilin_tasks.strategy import EMPTY, ORDERS, Document, Order, Strategy, constant


def _writes(order: Order) -> Callable[[Document], str]:
    def generate(doc: Document) -> str:
        place = {candidate: number for number, candidate in enumerate(doc["window"], start=1)}
        return render_ranking(place[i] for i in order(doc) if i in place)

    return generate


def _grades(order: Order) -> Callable[[Document], str]:
    """100 for the best, one less for each next; no opinion where the order has none."""

    def generate(doc: Document) -> str:
        return "50" if order is constant else str(max(0, 100 - list(order(doc)).index(doc["place"])))

    return generate


def _scores(order: Order) -> Callable[[Document, int], float]:
    """Request i < n scores candidate i + 1 (its yes); requests from n on (its no) are all the same."""

    def loglikelihood(doc: Document, idx: int) -> float:
        if idx >= len(doc["candidates"]) or order is constant:
            return -1.0
        return -1.0 - list(order(doc)).index(idx + 1)

    return loglikelihood


BASELINES: dict[str, Strategy] = {
    **{name: Strategy(_writes(order), _scores(order)) for name, order in ORDERS.items()},
    "empty": EMPTY,
}
GRADES: dict[str, Strategy] = {**{name: Strategy(_grades(order)) for name, order in ORDERS.items()}, "empty": EMPTY}
