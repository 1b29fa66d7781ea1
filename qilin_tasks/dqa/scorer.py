"""Answers to per-document scores for `qilin_dqa_*`: the table of its metrics, and the scorer that reads it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from qilin_tasks.answer_scorer import AnswerScorer
from qilin_tasks.dqa.documents import ACTION_COLUMNS, ENGAGED
from qilin_tasks.dqa.settings import RETRIEVERS, DQASettings
from qilin_tasks.family import Document
from qilin_tasks.metrics.answer_batch import (
    ANSWER_CHARS,
    BERTSCORE_CUT_RATE,
    BERTSCORE_F1,
    BERTSCORE_PRECISION,
    BERTSCORE_RECALL,
    BERTSCORE_UNKNOWN_RATE,
    EMPTY_RATE,
    UNFINISHED_REASONING_RATE,
    UNKNOWN_MARKS_RATE,
    AnswerBatch,
    count,
    rouge_l,
)
from qilin_tasks.metrics.copying import Copied, copied
from qilin_tasks.metrics.fact_agreement import contradicted_rate, fact_f1, fact_signature, supported_rate
from qilin_tasks.metrics.metric import Metric, Table, with_share
from qilin_tasks.signature import digest
from qilin_tasks.text.notes import RENDERING
from qilin_tasks.text.refusals import VERSION as REFUSALS
from qilin_tasks.text.refusals import is_refusal
from qilin_tasks.text.tokens import tokenize_chars, tokenize_jieba

logger = logging.getLogger(__name__)


def _trimmed(batch: AnswerBatch) -> list[float]:
    return [float(sum(note["trimmed"] for note in doc["notes"])) for doc in batch.docs]


def _shown(doc: Document) -> list[str]:
    return [text for note in doc["notes"] for text in (note["title"], note["content"])]


def _supported(batch: AnswerBatch) -> list[float]:
    pairs = zip(batch.texts, batch.docs, strict=True)
    return [supported_rate(text, [*_shown(doc), doc["query"]]) for text, doc in pairs]


def _refusals(batch: AnswerBatch) -> list[float]:
    return [float(is_refusal(text)) for text in batch.texts]


class DQABatch(AnswerBatch):
    """Answers beside the notes that were shown for them."""

    @cached_property
    def copied(self) -> list[Copied]:
        """What each answer copies from its notes."""
        return [copied(text, _shown(doc)) for text, doc in zip(self.texts, self.docs, strict=True)]


_FACTS = ("facts", lambda settings: fact_signature())

METRICS: Table[Any] = {
    "rouge_l": rouge_l(
        "ROUGE-L F1 over CJK characters and words of other scripts",
        tokenizer=tokenize_chars,
        name="char",
        headline=True,
    ),
    "rouge_l_jieba": rouge_l(
        "ROUGE-L F1 over jieba's Chinese words", tokenizer=tokenize_jieba, recipe="rougeL_jieba", name="jieba"
    ),
    "bertscore_f1": BERTSCORE_F1,
    "bertscore_precision": BERTSCORE_PRECISION,
    "bertscore_recall": BERTSCORE_RECALL,
    "bertscore_cut_rate": BERTSCORE_CUT_RATE,
    "fact_f1": Metric(
        about="F1 of the reference's numbers and claims",
        score=lambda batch: batch.best_of(fact_f1),
        higher_is_better=True,
        recipe=_FACTS,
    ),
    "supported_rate": Metric(
        about="share of the answer's facts that the shown notes or the question hold",
        score=_supported,
        higher_is_better=None,
        recipe=_FACTS,
    ),
    "contradicted_rate": Metric(
        about="share of the answer's facts that the reference denies",
        score=lambda batch: batch.best_of(contradicted_rate, lowest=True),
        higher_is_better=False,
        recipe=_FACTS,
    ),
    "refusal_rate": Metric(
        about="share of answers that say that the notes do not hold it",
        score=_refusals,
        higher_is_better=None,
        recipe=("refusals", lambda settings: REFUSALS),
    ),
    "copy_coverage": Metric(
        about="share of the answer that is copied from the shown notes",
        score=lambda batch: [one.coverage for one in batch.copied],
        higher_is_better=None,
    ),
    "copy_density": Metric(
        about="mean length of the copied piece that a token lies in",
        score=lambda batch: [one.density for one in batch.copied],
        higher_is_better=None,
        high=None,
    ),
    "bertscore_unknown_rate": BERTSCORE_UNKNOWN_RATE,
    "answer_chars": ANSWER_CHARS,
    "empty_rate": EMPTY_RATE,
    "unfinished_reasoning_rate": UNFINISHED_REASONING_RATE,
    "unknown_marks_rate": UNKNOWN_MARKS_RATE,
    "notes_shown": count("notes in the prompt", "notes"),
    "notes_trimmed": Metric(about="notes that the budget cut", score=_trimmed, higher_is_better=None, high=None),
}


def _engaged(batch: AnswerBatch) -> list[bool]:
    # Answers of older samples files come with documents that don't say.
    return [bool(doc.get(ENGAGED)) for doc in batch.docs]


class DQAScorer(AnswerScorer[DQASettings]):
    """ROUGE-L and BERTScore are 1 for the reference itself and 0 for an empty answer; a rate is 0 or 1.

    Every metric is given over all answers, and as `NAME_engaged` over those that the user acted on.
    """

    BATCH: ClassVar[type[AnswerBatch]] = DQABatch
    METRICS: ClassVar[Table[Any]] = with_share(
        METRICS, ENGAGED, _engaged, about="over the answers that the user acted on"
    )

    def document_parts(self) -> dict[str, Any]:
        chosen = self.settings
        shown = chosen.context != "na"
        return {
            "ctx": chosen.context_part,
            "k": chosen.top_k if chosen.context in RETRIEVERS else None,
            "note": chosen.note_chars if shown else None,
            "total": chosen.context_chars if shown else None,
            "answers": chosen.answers,
            "shown": RENDERING if shown else None,
        }

    def data_parts(self, documents: Sequence[Document]) -> dict[str, Any]:
        """`engaged` tells how many users acted, and which; `data` all else, so that it is what it was without."""
        flags = [doc[ENGAGED] for doc in documents]
        if not any(flags):
            why = "the data have not all of " + ", ".join(ACTION_COLUMNS) if None in flags else "no user acted"
            logger.info("no column `*_engaged`: %s", why)
        return {
            **super().data_parts([{name: doc[name] for name in doc if name != ENGAGED} for doc in documents]),
            ENGAGED: f"{sum(flags)}@{digest(flags, length=8)}" if None not in flags else None,
        }
