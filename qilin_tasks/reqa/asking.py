"""How a likelihood document is asked: one request a candidate, in shown order."""

from __future__ import annotations

from collections.abc import Sequence

from qilin_tasks.family import Asking, Document, Kind, Request
from qilin_tasks.reqa.documents import CANDIDATE_MARK


class Likelihoods(Asking):
    """The candidate stands in front of the question, so that all questions about it share the prompt's beginning."""

    kind: Kind = "loglikelihood"

    def requests(self, doc: Document, prompts: Sequence[str], choices: Sequence[str]) -> list[Request]:
        space = "" if doc["language"] == "zh" else " "
        (prompt,) = prompts
        if doc["direction"] == "question":
            scored = space + doc["question"]
            return [Request(doc, (prompt.replace(CANDIDATE_MARK, text), scored)) for text in doc["candidates"]]
        return [Request(doc, (prompt, space + text)) for text in doc["candidates"]]
