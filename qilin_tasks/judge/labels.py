"""People's labels of stored answers, as JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.judge.readings import MIRROR, PAIR, SUPPORT

#: Task, key and models: what a label and a judged answer or pair have in common.
Place = tuple[str, str, tuple[str, ...]]

FORMATS = {
    "nuggets": (
        '{"task": name, "key": doc_key, "model": name, "score": 0 to 1}, or instead of the score '
        '"verdicts": ["supported" | "partial" | "not", …] in the order of the frozen nuggets'
    ),
    "pairs": '{"task": name, "key": doc_key, "first": model, "second": model, "verdict": "first" | "tie" | "second"}',
}


@dataclass(frozen=True)
class Label:
    """One person's word on one answer (`models` of one) or on two; `score` is the first model's, from 0 to 1.

    `verdicts` are those of the nuggets, or the one of the pair; empty where only a score was given.
    """

    task: str
    key: str
    models: tuple[str, ...]
    score: float
    verdicts: tuple[str, ...]

    @property
    def place(self) -> Place:
        """What it is of."""
        return self.task, self.key, self.models

    def turned(self) -> Label:
        """The same word with the two models the other way round; a label of one answer stays as it is."""
        if len(self.models) < 2:
            return self
        return Label(
            self.task, self.key, self.models[::-1], 1 - self.score, tuple(MIRROR[verdict] for verdict in self.verdicts)
        )


def read_labels(path: Path, *, mode: str) -> list[Label]:
    """The labels of a file in FORMATS[mode]. Raises DataError with the line for anything else."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"--labels {path}: {error}. One JSON object a line: {FORMATS[mode]}") from error
    if not rows:
        raise DataError(f"--labels {path}: no line. One JSON object a line: {FORMATS[mode]}")
    read = _nuggets_row if mode == "nuggets" else _pairs_row
    labels = []
    for number, row in enumerate(rows, start=1):
        try:
            labels.append(read(row))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"--labels {path}, line {number}: {error!r}. The format: {FORMATS[mode]}") from error
    return labels


def _nuggets_row(row: Mapping[str, Any]) -> Label:
    if "verdicts" in row:
        verdicts = tuple(_choice(one, SUPPORT) for one in row["verdicts"])
        score = sum(SUPPORT[one] for one in verdicts) / len(verdicts) if verdicts else math.nan
    else:
        verdicts, score = (), float(row["score"])
    if not 0 <= score <= 1:
        raise ValueError(f"score {score!r}: must be from 0 to 1")
    return Label(str(row["task"]), str(row["key"]), (str(row["model"]),), score, verdicts)


def _pairs_row(row: Mapping[str, Any]) -> Label:
    verdict = _choice(row["verdict"], PAIR)
    models = (str(row["first"]), str(row["second"]))
    return Label(str(row["task"]), str(row["key"]), models, PAIR[verdict], (verdict,))


def _choice(value: Any, choices: Mapping[str, float]) -> str:
    if value not in choices:
        raise ValueError(f"verdict {value!r}: choose from {', '.join(choices)}")
    return str(value)


def mean_scores(labels: Sequence[Label]) -> dict[Place, float]:
    """The mean over the people who labelled the same."""
    found: dict[Place, list[float]] = {}
    for label in labels:
        found.setdefault(label.place, []).append(label.score)
    return {place: sum(scores) / len(scores) for place, scores in found.items()}
