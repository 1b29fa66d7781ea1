"""The validity card: the ladder and the agreement with people as one JSON object or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from qilin_tasks.metrics.answer_batch import BertScoreSettings
from qilin_tasks.results.stats import Interval
from qilin_tasks.validity.agreement import agreement, people
from qilin_tasks.validity.edits import EDITS
from qilin_tasks.validity.labels import Label
from qilin_tasks.validity.ladder import ladder, ladder_texts
from qilin_tasks.validity.scores import chosen

BASELINE = "rouge_l"


class Rung(TypedDict):
    """One edit of one metric; `n` texts that it changed."""

    value: float
    low: float
    high: float
    n: int


class Row(TypedDict, total=False):
    """One metric; `spearman` and what follows only with labels, `ladder` only for single metrics."""

    ladder: dict[str, Rung | None]
    spearman: float
    low: float
    high: float
    minus_baseline: tuple[float, float, float] | None


class Card(TypedDict):
    """`texts` of the ladder; `labels` and `pairs` are 0 without labels, `people` None without two annotators."""

    texts: int
    labels: int
    pairs: int
    people: float | None
    baseline: str
    metrics: dict[str, Row]


def card(
    texts: Sequence[str], labels: Sequence[Label] | None, *, names: Sequence[str], settings: BertScoreSettings
) -> Card:
    """Raises SettingError for an unknown metric, DataError for texts that are too short."""
    kept = ladder_texts(texts)
    scores = chosen(names, settings)
    shown = list(names) or list(scores)
    rungs = ladder(kept, {name: score for name, score in scores.items() if name in shown})
    metrics: dict[str, Row] = {
        name: {"ladder": {edit: _rung(value) for edit, value in rungs[name].items()}} if name in rungs else {}
        for name in shown
    }
    if labels:
        for name, found in agreement(labels, scores, names=shown, baseline=BASELINE).items():
            row = metrics[name]
            row["spearman"], row["low"], row["high"] = found.spearman, found.low, found.high
            row["minus_baseline"] = found.minus_baseline
    return {
        "texts": len(kept),
        "labels": len(labels or ()),
        "pairs": len({label.pair for label in labels or ()}),
        "people": people(labels) if labels else None,
        "baseline": BASELINE,
        "metrics": metrics,
    }


def _rung(value: Interval | None) -> Rung | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high, "n": value.clusters}


def markdown(made: Card) -> str:
    """The card's tables."""
    lines = [
        f"## Edited texts against themselves ({made['texts']} texts; mean over those that the edit changes, 95 %)",
        "",
        "| metric | " + " | ".join(f"{edit.about} ({edit.harm})" for edit in EDITS.values()) + " |",
        "|---|" + "---|" * len(EDITS),
    ]
    for name, row in made["metrics"].items():
        if "ladder" in row:
            lines.append(f"| {name} | " + " | ".join(_cell(row["ladder"][edit]) for edit in EDITS) + " |")
    if made["labels"]:
        lines += [
            "",
            f"## Agreement with people ({made['labels']} labels of {made['pairs']} pairs; Spearman, intervals by pair)",
            "",
            f"| metric | Spearman | 95 % | minus {made['baseline']} | 95 % |",
            "|---|---|---|---|---|",
        ]
        for name, row in made["metrics"].items():
            difference = row.get("minus_baseline")
            beside = f"{difference[0]:+.3f} | {difference[1]:+.3f} to {difference[2]:+.3f}" if difference else " | "
            lines.append(f"| {name} | {row['spearman']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {beside} |")
        if made["people"] is not None:
            lines.append(f"| one annotator with another | {made['people']:.3f} | | | |")
    return "\n".join(lines)


def _cell(rung: Rung | None) -> str:
    return "–" if rung is None else f"{rung['value']:.3f} ({rung['low']:.3f} to {rung['high']:.3f})"
