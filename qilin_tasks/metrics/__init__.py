"""Metrics: one file a quantity, pure functions of texts or rankings; `METRICS` is the table of the text metrics.

Importing this loads no model and no dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from qilin_tasks.errors import unknown
from qilin_tasks.metrics.answer import answer_chars, empty_rate
from qilin_tasks.metrics.rouge_l import rouge_l_batch
from qilin_tasks.text.tokens import tokenize_chars, tokenize_jieba

TextScorer = Callable[[Sequence[str | None], Sequence[str | None]], list[float]]


@dataclass(frozen=True)
class Metric:
    """What a metric's numbers mean. `score` maps hypotheses and references to one value a pair.

    `score` is None where the values come from a model with settings (`bertscore.BertScorer`) or not from the texts.
    """

    about: str
    higher_is_better: bool | None
    score: TextScorer | None = None


def _of_answers(quantity: Callable[[Sequence[str | None]], list[float]]) -> TextScorer:
    return lambda hypotheses, references: quantity(hypotheses)


METRICS: dict[str, Metric] = {
    "rouge_l": Metric(
        "ROUGE-L F1 over CJK characters and words of other scripts, 0..1",
        True,
        partial(rouge_l_batch, tokenizer=tokenize_chars),
    ),
    "rouge_l_jieba": Metric(
        "ROUGE-L F1 over jieba's Chinese words, 0..1", True, partial(rouge_l_batch, tokenizer=tokenize_jieba)
    ),
    "bertscore_f1": Metric("BERTScore F1, at most 1", True),
    "bertscore_precision": Metric("BERTScore precision, at most 1", True),
    "bertscore_recall": Metric("BERTScore recall, at most 1", True),
    "answer_chars": Metric("length of the answer in characters", None, _of_answers(answer_chars)),
    "empty_rate": Metric("share of empty answers, 0..1", False, _of_answers(empty_rate)),
    "unfinished_reasoning_rate": Metric("share of answers whose reasoning was never closed, 0..1", False),
}


def metric(name: str) -> Metric:
    """The metric of that name; SettingError with the choices for any other."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]
