"""What every format is told of a result: the model, its metrics with their intervals, its samples in plain words."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.families import metric_rows
from qilin_tasks.harness.backends import BACKENDS, weights_folder
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.results.cost import Cost, cost_of
from qilin_tasks.results.reader import Sample, TaskResult, iter_samples
from qilin_tasks.results.scores import Scores, load_scores
from qilin_tasks.results.stats import Interval

#: The data set on the hub that a family's documents come from, where it is one.
_DATASETS = {"dqa": "THUIR/Qilin", "qilin-listwise": "THUIR/Qilin", "qilin-pointwise": "THUIR/Qilin"}


@dataclass(frozen=True)
class Turn:
    """One message of a prompt."""

    role: str
    text: str


@dataclass(frozen=True)
class Exported:
    """A result that is to be written in another format. `scores` holds one value a document for each metric."""

    result: TaskResult
    scores: Scores

    @property
    def signature(self) -> str:
        """The line that says how the numbers were made; "" where the task has none."""
        return self.result.signature or ""

    @property
    def metrics(self) -> list[str]:
        """The task's metrics, the headline first."""
        return list(self.scores.values)

    @cached_property
    def cost(self) -> Cost | None:
        """What the answers took, where it was noted."""
        return cost_of(self.result)

    @property
    def date(self) -> datetime.datetime:
        """When it was evaluated."""
        return datetime.datetime.fromtimestamp(self.result.date, tz=datetime.timezone.utc)

    @property
    def model_id(self) -> str:
        """The hub's name of the model, or the served one; the name in the comparison for a folder of this machine."""
        arguments = self.result.model_args
        backend = BACKENDS.get(self.result.model_source)
        named = arguments.get(backend.argument) if backend is not None and isinstance(arguments, Mapping) else None
        if not isinstance(named, str) or weights_folder(self.result.model_source, {**arguments}) is not None:
            return self.result.model
        return named

    @property
    def dataset(self) -> str:
        """The data set's id on the hub, else the family's name."""
        family = self.result.parts.get("family", "")
        return _DATASETS.get(family, family or self.result.task)

    @property
    def on_hub(self) -> bool:
        """Whether `dataset` is an id on the hub."""
        return "/" in self.dataset

    def interval(self, metric: str) -> Interval:
        """Mean, standard error and 95 % interval."""
        return self.scores.interval(metric)

    def lower_is_better(self, metric: str) -> bool | None:
        """None where no direction is better."""
        rows = metric_rows(self.result.parts.get("family", ""))
        better = rows[metric].higher_is_better if metric in rows else self.result.higher_is_better.get(metric)
        return None if better is None else not better

    def bounds(self, metric: str) -> tuple[float, float] | None:
        """The metric's range; None where it has no end or isn't known."""
        row = metric_rows(self.result.parts.get("family", "")).get(metric)
        return None if row is None or row.high is None else (row.low, row.high)

    def samples(self) -> Iterator[Sample]:
        """The samples of the first filter, which `scores` are of."""
        first = None
        for sample in iter_samples(self.result):
            first = first or sample.filter
            if sample.filter == first:
                yield sample


def exported(result: TaskResult) -> Exported:
    """Read a result's scores. Raises DataError for one without samples or without metrics."""
    scores = load_scores(result)
    if not scores.values:
        raise DataError(
            f"{result.path}: {result.task} has no metrics of single documents, so there is nothing to export"
        )
    return Exported(result, scores)


def turns(prompt: str) -> list[Turn]:
    """A prompt as messages: a chat is stored as JSON, anything else is the user's."""
    try:
        parsed = json.loads(prompt)
    except ValueError:
        parsed = None
    if (
        isinstance(parsed, list)
        and parsed
        and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in parsed)
    ):
        return [Turn(str(message["role"]), _content(message["content"])) for message in parsed]
    return [Turn("user", prompt)]


def _content(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def outputs(sample: Sample) -> list[str]:
    """Everything that the model gave for a document, as text: one entry a request and repeat."""
    return [_content(response) for repeats in sample.responses for response in repeats]


def answer(sample: Sample) -> str:
    """What was scored, as far as a text says it."""
    value = sample.filtered[0] if len(sample.filtered) == 1 else sample.filtered
    return strip_reasoning(value).text if isinstance(value, str) else _content(value)


def question(sample: Sample) -> str:
    """The query of a document, or its whole first prompt."""
    for key in ("query", "question"):
        if isinstance(sample.doc.get(key), str):
            return str(sample.doc[key])
    return sample.prompts[0] if sample.prompts else ""
