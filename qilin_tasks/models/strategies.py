"""What the baseline model answers, by strategy: floors and ceilings for every table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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


def lead(doc: Mapping[str, Any]) -> str:
    """The first sentence of each shown note, in order (the summarisation literature's LEAD); empty without notes."""
    sentences = []
    for note in doc.get("notes") or ():
        found = _SENTENCE.search(note["content"] or note["title"])
        if found:
            sentences.append(found.group().strip())
    return "".join(sentences)


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
