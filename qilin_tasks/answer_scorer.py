"""What all families with written answers share: one answer a document, scored against its references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from qilin_tasks.family import Document, Scorer
from qilin_tasks.metrics.answer_batch import AnswerBatch, BertScoreSettings, bert_scorer
from qilin_tasks.parsing.answers import strip_reasoning

S = TypeVar("S", bound=BertScoreSettings)


class AnswerScorer(Scorer[S, Any]):
    """`responses[i]` holds the one answer to document i; BATCH is what its metrics read."""

    BATCH: ClassVar[type[AnswerBatch]] = AnswerBatch

    def check(self) -> None:
        scorer = bert_scorer(self.settings)
        if scorer is not None:
            scorer.check()

    def references(self, doc: Document) -> Sequence[str]:
        """The texts that a document's answer is compared with; the best of them counts."""
        several: Sequence[str] = doc.get("references") or [doc["reference"]]
        return several

    def data_parts(self, documents: Sequence[Document]) -> dict[str, Any]:
        """How many references a document has at most, where the family's documents hold several."""
        counts = [len(doc["references"]) for doc in documents if "references" in doc]
        return {"refs": max(counts) if counts else None, **super().data_parts(documents)}

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[str | None]]) -> AnswerBatch:
        outputs = [response[0] for response in responses]
        return self.BATCH(docs, outputs, [self.references(doc) for doc in docs], self.settings)

    def shown(self, response: Any) -> str:
        return strip_reasoning(response).text
