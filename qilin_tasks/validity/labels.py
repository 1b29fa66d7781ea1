"""People's labels of answers, out of a file of the user's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError

FORMAT = (
    'one JSON object a line: {"pair": id, "reference": text, "answer": text, "other": text (optional), '
    '"label": number}; the label says how much better `answer` is than `other`, or how good it is without one'
)


@dataclass(frozen=True)
class Label:
    """One annotator's label; rows of one `pair` are one cluster. `other` is None for a label of one answer."""

    pair: str
    reference: str
    answer: str
    other: str | None
    label: float


def read_labels(path: Path) -> list[Label]:
    """Labels of a JSONL file in FORMAT, or of RAGChecker's `human_labeled_data.json` (its overall label).

    Raises DataError with the row for a file that is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
        rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines() if x]
    except (OSError, ValueError) as error:
        raise DataError(f"--labels {path}: {error}. The format: {FORMAT}") from error
    labels = [_label(row, where=f"--labels {path}, row {number}") for number, row in enumerate(rows, start=1)]
    if len({label.pair for label in labels}) < 3:
        raise DataError(f"--labels {path}: fewer than three pairs say nothing of agreement. The format: {FORMAT}")
    if len({label.other is None for label in labels}) > 1:
        raise DataError(f"--labels {path}: some rows have `other` and some have none: put them into two files")
    return labels


def _label(row: Any, *, where: str) -> Label:
    if not isinstance(row, Mapping):
        raise DataError(f"{where} {row!r}: must be an object. The format: {FORMAT}")
    if "gt_answer" in row:
        row = {
            "pair": row.get("instance_id"),
            "reference": row.get("gt_answer"),
            "answer": row.get("model2", {}).get("response"),
            "other": row.get("model1", {}).get("response"),
            "label": row.get("overall_label"),
        }
    for name in ("pair", "reference", "answer", "label"):
        if row.get(name) is None:
            raise DataError(f"{where}: {name!r} is missing. The format: {FORMAT}")
    label = row["label"]
    if isinstance(label, bool) or not isinstance(label, (int, float)) or not math.isfinite(label):
        raise DataError(f"{where}: label {label!r} must be a number")
    other = row.get("other")
    return Label(
        str(row["pair"]), str(row["reference"]), str(row["answer"]), None if other is None else str(other), float(label)
    )
