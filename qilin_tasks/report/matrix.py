"""Which of two systems is better on how many documents: wins, ties and losses of every pair in a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qilin_tasks.report.analysis import Analysis
from qilin_tasks.report.collect import Board, Column, over_all
from qilin_tasks.report.packing import UNIT
from qilin_tasks.report.standings import differ, standings, tests_of

VERDICTS = {True: "ahead", False: "behind", None: "level"}


@dataclass(frozen=True)
class Duel:
    """Documents that `first` wins, that are ties, that it loses.

    `verdict` is the test's of the means: `ahead`, `behind`, or `level` where it doesn't tell the two apart.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    verdict: str


def duels(board: Board, analysis: Analysis, column: Column, metric: str) -> dict[tuple[str, str], Duel]:
    """All ordered pairs of compared systems, in the order of the standings; {} where no direction is better.

    Scores are counted as the page holds them, so that a filter of the samples shows the same documents.
    """
    higher = board.higher_is_better[metric]
    if higher is None:
        return {}
    place = {row.name: i for i, row in enumerate(standings(board, analysis, column, metric))}
    rows = [row for row in column.compared if metric in row.scores.values and row.result.model in place]
    rows.sort(key=lambda row: place[row.result.model])
    values = {row.result.model: over_all(row, metric, list(column.documents)) for row in rows}
    tests = tests_of(analysis, column, metric)
    found = {}
    for first, mine in values.items():
        for second, theirs in values.items():
            if first == second:
                continue
            sign = 1 if higher else -1
            gap = sign * (np.rint(mine * UNIT) - np.rint(theirs * UNIT))
            counts = (int((gap > 0).sum()), int((gap == 0).sum()), int((gap < 0).sum()))
            better = float(np.nanmean(sign * (mine - theirs))) > 0 if differ(tests, first, second) else None
            found[first, second] = Duel(first, second, *counts, verdict=VERDICTS[better])
    return found
