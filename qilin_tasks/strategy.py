"""What a baseline answers: a strategy's two methods, and the orders of candidates that families share."""

from __future__ import annotations

import random as random_module
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class Strategy(NamedTuple):
    """`generate(doc)` writes an answer; `loglikelihood(doc, idx)` scores request `idx` of a document (more is better).

    None stands for a kind of request that the strategy has no answer to.
    """

    generate: Callable[[Document], str] | None
    loglikelihood: Callable[[Document, int], float] | None = None


Order = Callable[[Document], Sequence[int]]
"""All candidates of a document, ids from 1, best first."""


def first_stage(doc: Document) -> Sequence[int]:
    """The order of the first stage: for Qilin a BM25 over characters within the list, for ReQA the pool's retriever."""
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


ORDERS: dict[str, Order] = {"first_stage": first_stage, "oracle": oracle, "random": random, "constant": constant}


# A sentence ends at a terminator, closing quotes included, or at a line break.
_SENTENCE = re.compile(r"[^。！？!?\n]+(?:[。！？!?]+[”’」』）)]*)?")
LEAD_SENTENCES = 5


def lead_of(texts: Iterable[str], *, sentences: int = LEAD_SENTENCES) -> str:
    """The first `sentences` sentences: every text's first, then every text's second, …; empty without texts.

    The summarisation literature's LEAD-k over several documents.
    """
    turns = [
        sentence.strip() for turn in zip_longest(*map(_SENTENCE.findall, texts), fillvalue="") for sentence in turn
    ]
    return "".join([sentence for sentence in turns if sentence][:sentences])


def empty(doc: Document) -> str:
    """Nothing: the floor of whatever is written."""
    return ""


EMPTY = Strategy(empty)
