"""What is wrong with an answer, by the metrics that say so: which documents the page's filters show."""

from __future__ import annotations

from collections.abc import Sequence

from qilin_tasks.report.collect import Row

#: A document is flagged where one of the metrics is above zero.
FLAGS = {
    "empty": ("empty_rate",),
    "refused": ("refused_rate", "refusal_rate"),
    "unfinished": ("unfinished_reasoning_rate",),
    "trimmed": ("notes_trimmed",),
}


def flags_of(row: Row, keys: Sequence[int | str]) -> dict[str, list[int]]:
    """For each flag the places in `keys` that carry it; an answer without any text is empty by itself."""
    place = {key: i for i, key in enumerate(keys)}
    found: dict[str, set[int]] = {name: set() for name in FLAGS}
    for name, metrics in FLAGS.items():
        for metric in metrics:
            values = row.scores.values.get(metric, ())
            found[name] |= {place[key] for key, v in zip(row.scores.keys, values, strict=False) if v > 0}
    for key, output, answer in zip(row.scores.keys, row.outputs, row.answers, strict=True):
        if not (output if answer is None else answer).strip():
            found["empty"].add(place[key])
    return {name: sorted(places) for name, places in found.items()}
