"""What the demo says at its end: a table with intervals, the paired differences, and one sentence made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from qilin_tasks.results.reader import find_results
from qilin_tasks.results.scores import Scores, load_scores
from qilin_tasks.results.stats import Interval, compare_systems

CONDITIONS = ("na", "bert", "bm25", "oracle")
#: Table 11 of arXiv 2503.00501, every model: no notes, BERT's, BM25's, the cited ones.
PAPER_ORDER = CONDITIONS
COLUMNS = ("rouge_l", "bertscore_f1", "answer_chars", "empty_rate")
COMPARED = ("rouge_l", "bertscore_f1")
RESAMPLES, SEED = 10_000, 2503


def load(folder: Path) -> dict[str, Scores]:
    """The scores of each condition below a run's output folder."""
    by_task = {result.task: result for result in find_results([folder])}
    return {condition: load_scores(by_task[f"qilin_dqa_{condition}"]) for condition in CONDITIONS}


def table(runs: Mapping[str, Mapping[str, Scores]]) -> str:
    """Markdown: one row for a model under a condition, means with their 95 % intervals."""
    rows = [["model", "context", "n", *COLUMNS]]
    for name, run in runs.items():
        for condition, scores in run.items():
            cells = [_cell(scores.interval(column)) for column in COLUMNS]
            rows.append([name, condition, str(len(scores.keys)), *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows)


def _cell(interval: Interval) -> str:
    digits = 3 if abs(interval.value) < 10 else 1
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def differences(run: Mapping[str, Scores], metric: str) -> dict[str, Interval]:
    """Each condition minus no notes, on the same queries: mean and 95 % interval of the paired bootstrap."""
    keys = run["na"].keys
    columns = []
    for condition in CONDITIONS:
        position = {key: place for place, key in enumerate(run[condition].keys)}
        columns.append(run[condition].values[metric][[position[key] for key in keys]])
    tests = compare_systems(
        np.column_stack(columns),
        resamples=RESAMPLES,
        seed=SEED,
        pairs=[(other, 0) for other in range(1, len(CONDITIONS))],
        clusters=run["na"].clusters,
    )
    return {condition: test.difference for condition, test in zip(CONDITIONS[1:], tests, strict=True)}


def difference_lines(by_metric: Mapping[str, Mapping[str, Interval]]) -> str:
    """A line a metric: what each condition adds to no notes."""
    lines = []
    for metric, intervals in by_metric.items():
        parts = [f"{c} {i.value:+.3f} ({i.low:+.3f} to {i.high:+.3f})" for c, i in intervals.items()]
        lines.append(f"{metric} minus that of na: " + ", ".join(parts))
    return "\n".join(lines)


def sentence(name: str, *, means: Mapping[str, float], against_none: Mapping[str, Interval]) -> str:
    """What the run shows of ROUGE-L, as far as the intervals of the differences from no notes carry it."""
    verdicts = {
        "is higher with the notes of {} than without notes": [c for c, i in against_none.items() if i.low > 0],
        "is lower with the notes of {} than without notes": [c for c, i in against_none.items() if i.high < 0],
        "can't be told apart with the notes of {} and without notes": [
            c for c, i in against_none.items() if i.low <= 0 <= i.high
        ],
    }
    said = [text.format(_and(conditions)) for text, conditions in verdicts.items() if conditions]
    queries = next(iter(against_none.values())).n
    return (
        f"On these {queries} queries {name}'s ROUGE-L {', '.join(said)} (95 %, each difference by itself); "
        f"by its means {order(means)}."
    )


def order(means: Mapping[str, float]) -> str:
    """The conditions from the lowest mean to the highest, and whether that is the paper's order."""
    ranked = sorted(means, key=lambda condition: means[condition])
    signs = [" = " if means[a] == means[b] else " < " for a, b in pairwise(ranked)]
    shown = ranked[0] + "".join(sign + condition for sign, condition in zip(signs, ranked[1:], strict=True))
    if tuple(ranked) == PAPER_ORDER and " = " not in signs:
        return f"{shown}, the paper's order"
    return f"{shown}, not the paper's order {' < '.join(PAPER_ORDER)}"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
