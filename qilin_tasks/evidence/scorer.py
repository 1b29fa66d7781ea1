"""Answers to values for the tasks with chosen evidence: what each adds to the metrics of DQA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from qilin_tasks.answer_scorer import AnswerScorer
from qilin_tasks.dqa import scorer as dqa
from qilin_tasks.evidence.documents import LEAK, POOL
from qilin_tasks.evidence.settings import EvidenceSettings
from qilin_tasks.metrics.answer_batch import AnswerBatch, count
from qilin_tasks.metrics.citations import VERSION as CITATIONS
from qilin_tasks.metrics.citations import CitationScores, score_citations
from qilin_tasks.metrics.metric import Metric, Table
from qilin_tasks.metrics.refusal import refusal_f1, share_among
from qilin_tasks.parsing.citations import parse_citations, strip_citations
from qilin_tasks.text.notes import RENDERING
from qilin_tasks.text.refusals import VERSION as REFUSALS
from qilin_tasks.text.refusals import is_refusal


class EvidenceScorer(AnswerScorer[EvidenceSettings]):
    """The metrics of DQA over chosen evidence (`qilin_dqa_grid_*`)."""

    BATCH: ClassVar[type[AnswerBatch]] = dqa.DQABatch
    METRICS: ClassVar[Table[Any]] = {
        **dqa.METRICS,
        "cited_shown": count("cited notes in the prompt", "cited"),
        "leaked": count("distractors left out because they hold the answer", "leaked"),
    }

    def document_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {
            "notes": chosen.notes,
            "distractors": f"{chosen.distractors:g}",
            "place": chosen.place,
            "seed": chosen.seed,
            "pool": f"{chosen.ranking_part}-{POOL}-leak{LEAK}",
            "note": chosen.note_chars,
            "total": chosen.context_chars,
            "answers": chosen.answers,
            "shown": RENDERING,
        }


class CitedBatch(dqa.DQABatch):
    """Answers whose marks are read first and then taken away, so that other metrics see what a reader reads."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.citations: list[CitationScores] = [
            score_citations(parse_citations(text), cited=doc["cited"], shown=len(doc["notes"]))
            for text, doc in zip(self.texts, self.docs, strict=True)
        ]
        self.texts = [strip_citations(text).strip() for text in self.texts]


def _cite(about: str, column: str, *, higher_is_better: bool) -> Metric[CitedBatch]:
    return Metric(
        about=about,
        score=lambda batch: [float(getattr(scores, column)) for scores in batch.citations],
        higher_is_better=higher_is_better,
        recipe=("citations", lambda settings: CITATIONS),
    )


class CiteScorer(EvidenceScorer):
    """`qilin_dqa_cite`: the set of cited numbers against the places of the cited notes."""

    BATCH: ClassVar[type[AnswerBatch]] = CitedBatch
    METRICS: ClassVar[Table[Any]] = {
        "cite_f1": _cite("F1 of the cited numbers", "f1", higher_is_better=True),
        "cite_precision": _cite("share of the cited numbers that are right", "precision", higher_is_better=True),
        "cite_recall": _cite("share of the cited notes that the answer cites", "recall", higher_is_better=True),
        "invented_rate": _cite("share of the numbers that were not shown", "invented", higher_is_better=False),
        "uncited_rate": _cite("share of the sentences without a number", "uncited", higher_is_better=False),
        **EvidenceScorer.METRICS,
    }


def _refusal(
    about: str, values: Callable[[list[bool], list[bool]], list[float]], *, higher_is_better: bool
) -> Metric[AnswerBatch]:
    def score(batch: AnswerBatch) -> list[float]:
        return values([is_refusal(text) for text in batch.texts], [not doc["cited"] for doc in batch.docs])

    return Metric(
        about=about,
        score=score,
        higher_is_better=higher_is_better,
        low=-1e9,
        high=None,
        recipe=("refusals", lambda settings: REFUSALS),
    )


class NoEvidenceScorer(EvidenceScorer):
    """`qilin_dqa_noevidence`: refusing where no cited note is shown, and not where one is."""

    METRICS: ClassVar[Table[Any]] = {
        "refusal_f1": _refusal("F1 of refusing where no note is cited", refusal_f1, higher_is_better=True),
        "refusal_precision": _refusal(
            "share of the refusals that are due",
            lambda refused, due: share_among(due, refused),
            higher_is_better=True,
        ),
        "refusal_recall": _refusal("share refused where no note is cited", share_among, higher_is_better=True),
        "false_refusal_rate": _refusal(
            "share refused with the cited notes shown",
            lambda refused, due: share_among(refused, [not wanted for wanted in due]),
            higher_is_better=False,
        ),
        **EvidenceScorer.METRICS,
    }
