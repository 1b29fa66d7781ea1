"""Citation precision, recall and F1 over the sets of note numbers (after ALCE, Gao et al. 2023, arXiv 2305.14627).

ALCE asks a model whether a passage supports a sentence; here the notes that the shown answer cites are the truth.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from qilin_tasks.parsing.citations import Citations

VERSION = "cite-1"


class CitationScores(NamedTuple):
    """Each in 0..1; `invented` of the numbers used, `uncited` of the sentences."""

    precision: float
    recall: float
    f1: float
    invented: float
    uncited: float


def score_citations(used: Citations, *, cited: Collection[int], shown: int) -> CitationScores:
    """`cited` are the places of the cited notes among `shown` numbered from 1; all are 0 where nothing is written."""
    right = len(set(used.numbers) & set(cited))
    numbers = len(used.numbers)
    return CitationScores(
        precision=right / numbers if numbers else 0.0,
        recall=right / len(cited) if cited else 0.0,
        f1=2 * right / (numbers + len(cited)) if right else 0.0,
        invented=sum(not 1 <= number <= shown for number in used.numbers) / numbers if numbers else 0.0,
        uncited=used.uncited / used.sentences if used.sentences else 0.0,
    )
