"""Parts of ours that any task's YAML can name, registered with the harness: metrics, a filter, an aggregation.

Releases of the harness with entry points (`lm_eval.metrics`, `lm_eval.filters`, `lm_eval.aggregations`) import this
module when a name is asked for; before them `qilin-tasks run` does, or `import qilin_tasks.harness.components`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import lm_eval.api.metrics  # noqa: F401  (registers `mean`, which the metrics below name)
from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_aggregation, register_filter, register_metric

from qilin_tasks.metrics.rouge_l import rouge_l
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.text.tokens import Tokenizer, tokenize_chars, tokenize_jieba


class StripReasoning(Filter):  # type: ignore[misc]
    """Responses without their reasoning; one whose reasoning never ended becomes empty."""

    def apply(self, resps: Iterable[Sequence[str | None]], docs: Any) -> list[list[str]]:
        return [[strip_reasoning(response).text for response in responses] for responses in resps]


def qilin_rouge_l(references: Sequence[str], predictions: Sequence[str], **ignored: Any) -> float:
    """ROUGE-L F1 in [0, 1], characters for CJK and words for Latin; the best over several references."""
    return _best(references, predictions, tokenize_chars)


def qilin_rouge_l_jieba(references: Sequence[str], predictions: Sequence[str], **ignored: Any) -> float:
    """ROUGE-L F1 in [0, 1] over jieba's words; the best over several references."""
    return _best(references, predictions, tokenize_jieba)


def _best(references: Sequence[str], predictions: Sequence[str], tokenizer: Tokenizer) -> float:
    return max(rouge_l(predictions[0], reference, tokenizer=tokenizer).f1 for reference in references)


def mean_of_best(items: Iterable[tuple[Any, float]]) -> float:
    """Mean over distinct keys of the best value of each: how ReQA's evaluation counts a question asked twice."""
    best: dict[Any, float] = {}
    for key, value in items:
        best[key] = max(value, best.get(key, value))
    return sum(best.values()) / len(best)


FILTERS = {"qilin_strip_reasoning": StripReasoning}
METRICS = {"qilin_rouge_l": qilin_rouge_l, "qilin_rouge_l_jieba": qilin_rouge_l_jieba}
AGGREGATIONS = {"qilin_mean_of_best": mean_of_best}

for _name, _filter in FILTERS.items():
    register_filter(_name)(_filter)
for _name, _aggregation in AGGREGATIONS.items():
    register_aggregation(_name)(_aggregation)
for _name, _metric in METRICS.items():
    register_metric(metric=_name, higher_is_better=True, aggregation="mean")(_metric)
