"""Refusing where there is no evidence: precision, recall and F1 over documents with and without it (after RGB's
negative rejection, Chen et al. 2024, arXiv 2309.01431).
"""

from __future__ import annotations

from collections.abc import Sequence


def ratio_values(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """One value a document whose mean is sum(numerators) / sum(denominators), 0 where the latter is 0.

    value = R + (n - R d) / mean(d): the linearised ratio, so that the standard error of the mean is the ratio's own by
    the delta method. A single value may lie outside 0..1.
    """
    total = sum(denominators)
    if not total:
        return [0.0] * len(numerators)
    ratio = sum(numerators) / total
    mean = total / len(denominators)
    return [ratio + (n - ratio * d) / mean for n, d in zip(numerators, denominators, strict=True)]


def refusal_f1(refused: Sequence[bool], due: Sequence[bool]) -> list[float]:
    """2 TP / (2 TP + FP + FN) of refusing where it is due, as `ratio_values`."""
    hits = [2.0 * (said and wanted) for said, wanted in zip(refused, due, strict=True)]
    return ratio_values(hits, [float(said + wanted) for said, wanted in zip(refused, due, strict=True)])


def share_among(refused: Sequence[bool], among: Sequence[bool]) -> list[float]:
    """Share of the documents `among` in which the answer refuses: recall where it is due, false refusals elsewhere."""
    hits = [float(said and counted) for said, counted in zip(refused, among, strict=True)]
    return ratio_values(hits, [float(counted) for counted in among])
