"""What the baseline model answers, by strategy: floors and ceilings for every table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from qilin_tasks.errors import SettingError


class Strategy(NamedTuple):
    """`generate(doc)` writes an answer; `loglikelihood(doc, idx)` scores request `idx` of a document (more is better).

    None stands for a kind of request that the strategy has no answer to.
    """

    generate: Callable[[Mapping[str, Any]], str] | None
    loglikelihood: Callable[[Mapping[str, Any], int], float] | None = None


# A sentence ends at a terminator, closing quotes included, or at a line break.
_SENTENCE = re.compile(r"[^。！？!?\n]+(?:[。！？!?]+[”’」』）)]*)?")


LEAD_SENTENCES = 5


def lead(doc: Mapping[str, Any]) -> str:
    """LEAD-5: the first sentences of the shown notes, five in all; every note's first, then every note's second, …

    The summarisation literature's LEAD-k over several documents; empty without notes.
    """
    by_note = [_SENTENCE.findall(note["content"] or note["title"]) for note in doc.get("notes") or ()]
    turns = [sentence.strip() for turn in zip_longest(*by_note, fillvalue="") for sentence in turn]
    return "".join([sentence for sentence in turns if sentence][:LEAD_SENTENCES])


def reference(doc: Mapping[str, Any]) -> str:
    """The gold answer: the ceiling."""
    if "reference" not in doc:
        raise SettingError("strategy 'reference' needs documents with a reference answer; for rankings use 'oracle'")
    return str(doc["reference"])


def empty(doc: Mapping[str, Any]) -> str:
    """Nothing: the floor."""
    return ""


ANSWER_STRATEGIES: dict[str, Strategy] = {
    "lead": Strategy(lead),
    "reference": Strategy(reference),
    "empty": Strategy(empty),
}
