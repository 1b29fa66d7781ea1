"""Answers beside their references, scored together: what the metrics of written answers read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

from qilin_tasks.metrics.answer import answer_chars, empty_rate, unfinished_reasoning_rate
from qilin_tasks.metrics.bertscore import BertScorer, BertScores, bertscore_signature
from qilin_tasks.metrics.metric import Metric
from qilin_tasks.metrics.rouge_l import rouge_l_batch, rouge_signature
from qilin_tasks.parsing.answers import Answer, strip_reasoning
from qilin_tasks.settings import SWITCH, Settings
from qilin_tasks.text.tokens import Tokenizer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BertScoreSettings(Settings):
    """How BERTScore is computed; shared by every task that reports it."""

    bertscore: str
    bertscore_model: str
    bertscore_layer: int
    bertscore_device: str
    bertscore_batch_size: int

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"bertscore": SWITCH}
    MINIMUM: ClassVar[Mapping[str, int]] = {"bertscore_layer": 1, "bertscore_batch_size": 1}


def bert_scorer(settings: BertScoreSettings) -> BertScorer | None:
    """The scorer that the settings name, or None with `bertscore: off`."""
    if settings.bertscore == "off":
        return None
    return BertScorer(
        model=settings.bertscore_model,
        layer=settings.bertscore_layer,
        device=settings.bertscore_device,
        batch_size=settings.bertscore_batch_size,
    )


class AnswerBatch:
    """Documents with whole outputs (reasoning included) and one or more references each.

    A metric of a pair counts with the document's best reference, each metric with its own. Heavy metrics run once, when
    first asked for.
    """

    def __init__(
        self,
        docs: Sequence[Mapping[str, Any]],
        outputs: Sequence[str | None],
        references: Sequence[Sequence[str]],
        settings: BertScoreSettings,
    ) -> None:
        self.docs = docs
        self.answers: list[Answer] = [strip_reasoning(output) for output in outputs]
        unknown = sum(answer.unknown_marks > 0 for answer in self.answers)
        if unknown:
            logger.warning(
                "%d of %d answers hold marks of a reasoning notation that is not known here: their reasoning may be "
                "scored as the answer (unknown_marks_rate)",
                unknown,
                len(self.answers),
            )
        self.texts = [answer.text for answer in self.answers]
        self.references = references
        self.settings = settings

    def best_of(self, value: Callable[[str, str], float], *, lowest: bool = False) -> list[float]:
        """`value(answer, reference)` of each document with its best reference: the highest value, or the lowest."""
        best = min if lowest else max
        return [
            best(value(text, gold) for gold in golds) for text, golds in zip(self.texts, self.references, strict=True)
        ]

    @cached_property
    def _pairs(self) -> tuple[list[str], list[str]]:
        texts = [text for text, golds in zip(self.texts, self.references, strict=True) for _ in golds]
        return texts, [gold for golds in self.references for gold in golds]

    def _best_pairs(self, values: Sequence[float]) -> list[int]:
        """For each document the position, among all pairs, of its pair with the highest value."""
        best, start = [], 0
        for golds in self.references:
            best.append(max(range(start, start + len(golds)), key=values.__getitem__))
            start += len(golds)
        return best

    def rouge_l(self, tokenizer: Tokenizer) -> list[float]:
        """ROUGE-L F1 of each document, 0..1."""
        values = rouge_l_batch(*self._pairs, tokenizer=tokenizer)
        return [values[pair] for pair in self._best_pairs(values)]

    @cached_property
    def bertscore(self) -> BertScores:
        """BERTScore of each document: the highest precision, recall and F1, each by itself as `bert_score` has it.

        Whether a text was cut, and how much of it is unknown, is said of the pair with the highest F1.
        """
        scorer = bert_scorer(self.settings)
        if scorer is None:
            raise RuntimeError("a metric of BERTScore was asked for although it is off")
        scores = scorer.score(*self._pairs)
        precision, recall, f1, cut, unknown = scores
        best = self._best_pairs(f1)
        return BertScores(
            [precision[pair] for pair in self._best_pairs(precision)],
            [recall[pair] for pair in self._best_pairs(recall)],
            [f1[pair] for pair in best],
            [cut[pair] for pair in best],
            [unknown[pair] for pair in best],
        )


def _bertscore(
    about: str, column: str, *, higher_is_better: bool = True, low: float = -1.0, headline: bool = False
) -> Metric[AnswerBatch]:
    return Metric(
        about=about,
        score=lambda batch: [float(value) for value in getattr(batch.bertscore, column)],
        higher_is_better=higher_is_better,
        low=low,
        switch="bertscore",
        settings=("bertscore_model", "bertscore_layer", "bertscore_device", "bertscore_batch_size"),
        recipe=("bertscore", lambda s: bertscore_signature(model=s.bertscore_model, layer=s.bertscore_layer)),
        headline=headline,
    )


def rouge_l(
    about: str, *, tokenizer: Tokenizer, name: str, recipe: str = "rougeL", headline: bool = False
) -> Metric[AnswerBatch]:
    """A row of ROUGE-L over one tokenizer; `name` is the tokenizer's in the signature's part `recipe`."""
    return Metric(
        about=about,
        score=lambda batch: batch.rouge_l(tokenizer),
        higher_is_better=True,
        # A part that is named for the metric need not say so twice.
        recipe=(recipe, lambda settings: rouge_signature(name).removeprefix("rougeL:" if "rougeL" in recipe else "")),
        headline=headline,
    )


BERTSCORE_F1 = _bertscore("BERTScore F1, at most 1", "f1", headline=True)
BERTSCORE_PRECISION = _bertscore("BERTScore precision, at most 1", "precision")
BERTSCORE_RECALL = _bertscore("BERTScore recall, at most 1", "recall")
BERTSCORE_CUT_RATE = _bertscore(
    "share of pairs with a text cut at the encoder's limit", "cut", higher_is_better=False, low=0.0
)
BERTSCORE_UNKNOWN_RATE = _bertscore(
    "share of both texts' tokens that the encoder does not know", "unknown", higher_is_better=False, low=0.0
)
ANSWER_CHARS: Metric[AnswerBatch] = Metric(
    about="length of the answer in characters",
    score=lambda batch: answer_chars(batch.texts),
    higher_is_better=None,
    high=None,
)
EMPTY_RATE: Metric[AnswerBatch] = Metric(
    about="share of empty answers", score=lambda batch: empty_rate(batch.texts), higher_is_better=False
)
UNKNOWN_MARKS_RATE: Metric[AnswerBatch] = Metric(
    about="share of answers with what looks like a mark of an unknown reasoning notation, which stayed in the text",
    score=lambda batch: [float(answer.unknown_marks > 0) for answer in batch.answers],
    higher_is_better=False,
)
UNFINISHED_REASONING_RATE: Metric[AnswerBatch] = Metric(
    about="share of answers whose reasoning was never closed",
    score=lambda batch: unfinished_reasoning_rate([answer.unfinished for answer in batch.answers]),
    higher_is_better=False,
)


def count(about: str, field: str, *, higher_is_better: bool | None = None, high: float | None = None) -> Metric[Any]:
    """A row that shows a number out of the document: a list's length, or the number itself."""
    return Metric(about=about, score=partial(_field, field=field), higher_is_better=higher_is_better, high=high)


def _field(batch: Any, *, field: str) -> list[float]:
    values = (doc.get(field, 0) for doc in batch.docs)
    return [float(len(value) if isinstance(value, list) else value) for value in values]
