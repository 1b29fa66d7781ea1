"""A user's own metric: a function in a task's YAML (`metric: !function mine.has_digit`), for one document or all."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qilin_tasks.errors import SettingError

FORMS = (
    "def metric(references, predictions) -> one number for a document (lists of its references and answers), or, with "
    "`batch: true` beside it, def metric(references, predictions, docs) -> a list of one number a document"
)


@dataclass(frozen=True)
class OwnMetric:
    """`function` is called once a document as the harness does, or once for all where `batch` says so."""

    name: str
    function: Callable[..., Any]
    batch: bool
    higher_is_better: bool | None

    @property
    def digest(self) -> str:
        """The first digits of the SHA-256 of the function's source: other code gives other numbers."""
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            source = repr(getattr(self.function, "__code__", self.function))
        return hashlib.sha256(source.encode()).hexdigest()[:8]

    def score(
        self, docs: Sequence[Mapping[str, Any]], references: Sequence[Any], predictions: Sequence[Any]
    ) -> list[float]:
        """One number a document. Raises SettingError, naming the function, for anything else."""
        golds = [gold if isinstance(gold, list) else [gold] for gold in references]
        answers = [answer if isinstance(answer, list) else [answer] for answer in predictions]
        try:
            if self.batch:
                taken = inspect.signature(self.function).parameters
                extra = {"docs": list(docs)} if "docs" in taken else {}
                values = list(self.function(references=golds, predictions=answers, **extra))
            else:
                values = [
                    self.function(references=gold, predictions=answer)
                    for gold, answer in zip(golds, answers, strict=True)
                ]
            numbers = [float(value) for value in values]
        except Exception as error:
            raise SettingError(
                f"metric {self.name!r} ({inspect.getmodule(self.function)}) failed: {type(error).__name__}: {error}; "
                f"write {FORMS}"
            ) from error
        if len(numbers) != len(docs) or not all(map(math.isfinite, numbers)):
            bad = next((number for number in numbers if not math.isfinite(number)), None)
            raise SettingError(
                f"metric {self.name!r}: {len(numbers)} values for {len(docs)} documents"
                + (f", one of them {bad}" if bad is not None else "")
                + f"; write {FORMS}"
            )
        return numbers


def own_metrics(entries: Sequence[Mapping[str, Any]]) -> dict[str, OwnMetric]:
    """The functions among a YAML's `metric_list`, by name."""
    own: dict[str, OwnMetric] = {}
    for entry in entries:
        function = entry.get("metric")
        if not callable(function):
            continue
        name = str(getattr(function, "__name__", type(function).__name__))
        if name in own:
            raise SettingError(f"metric {name!r} is there twice: give each function a name of its own")
        own[name] = OwnMetric(name, function, bool(entry.get("batch")), entry.get("higher_is_better", True))
    return own


def own_part(own: Mapping[str, OwnMetric]) -> str | None:
    """The signature's part: each name with the digest of its function; None without any."""
    return ",".join(f"{name}@{metric.digest}" for name, metric in own.items()) or None
