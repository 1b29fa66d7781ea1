"""Baselines with closed forms: who cites all, some or the right notes, always or never refuses, reads some places."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from qilin_tasks.dqa import baselines as dqa
from qilin_tasks.strategy import Document, Strategy

REFUSAL = "笔记中没有提到这个问题的答案。"


def _citing(numbers: Callable[[Document], Iterable[int]]) -> Strategy:
    def generate(doc: Document) -> str:
        text = str(doc["reference"]).rstrip("。.!！?？\n ")
        return text + "".join(f"[{number}]" for number in numbers(doc)) + "。"

    return Strategy(generate)


def _all(doc: Document) -> range:
    return range(1, len(doc["notes"]) + 1)


def _random(doc: Document) -> list[int]:
    """As many as are cited, drawn by the document's key."""
    return Random(f"cite|{doc['doc_key']}").sample(_all(doc), len(doc["cited"]))  # noqa: S311


def _reading(places: Callable[[Document], Iterable[int]]) -> Strategy:
    """Knows the answer where one of the places that it reads holds a cited note, and says nothing elsewhere."""

    def generate(doc: Document) -> str:
        return str(doc["reference"]) if set(places(doc)) & set(doc["cited"]) else ""

    return Strategy(generate)


CITE: dict[str, Strategy] = {
    **dqa.BASELINES,
    "cite_oracle": _citing(lambda doc: doc["cited"]),
    "cite_all": _citing(_all),
    "cite_random": _citing(_random),
}
NO_EVIDENCE: dict[str, Strategy] = {
    **dqa.BASELINES,
    "always_refuse": Strategy(lambda doc: REFUSAL),
    "never_refuse": dqa.BASELINES["reference"],
}
GRID: dict[str, Strategy] = {
    **dqa.BASELINES,
    "read_first": _reading(lambda doc: [1]),
    "read_last": _reading(lambda doc: [len(doc["notes"])]),
    "read_cited": _reading(lambda doc: doc["cited"]),
}
