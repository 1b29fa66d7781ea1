"""Responses to the metrics of Table 10, one dict a request, for both ways of asking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qilin_tasks.candidates.windows import merge
from qilin_tasks.errors import DataError
from qilin_tasks.metrics.ranking import QILIN_MEASURES
from qilin_tasks.parsing.rankings import ParsedRanking, parse_ranking
from qilin_tasks.scoring.ranking import RATES, rates, repaired_names, strict_and_repaired

Document = Mapping[str, Any]

COUNTS = ("candidates", "candidates_trimmed", "windows", "images_missing")
METRICS = (*QILIN_MEASURES, *repaired_names(QILIN_MEASURES), *RATES, *COUNTS)


def score_listwise(docs: Sequence[Document], responses: Sequence[Sequence[str | None]]) -> list[dict[str, float]]:
    """One dict of METRICS for each document; `responses[i][w]` is the answer to window w of document i."""
    rows = []
    for doc, answers in zip(docs, responses, strict=True):
        shown: list[list[int]] = doc["windows"]
        parsed = [parse_ranking(text, n=len(ids)) for text, ids in zip(answers, shown, strict=True)]
        rankings = [[ids[i - 1] for i in ranking.ids] for ranking, ids in zip(parsed, shown, strict=True)]
        rows.append(_row(doc, merge(rankings, shown, n=len(doc["candidates"])), parsed))
    return rows


def score_pointwise(docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
    """One dict of METRICS for each document; the log-likelihood of yes minus no ranks, ties stay in shown order.

    `responses[i]` holds (log-likelihood, greedy) of the yes of each of the n candidates, then of their no. Raises
    DataError for a value that is no number: the engine failed, which is no score.
    """
    rows = []
    for doc, pairs in zip(docs, responses, strict=True):
        n = len(doc["candidates"])
        values = [float(pair[0]) for pair in pairs]
        if len(values) != 2 * n or any(math.isnan(value) for value in values):
            raise DataError(
                f"document {doc['doc_key']!r}: {len(values)} log-likelihoods ({values[:3]}…) for a yes and a no of "
                f"each of {n} candidates; each must be a number, so the engine failed: run it again"
            )
        scores = [0.0 if yes == no else yes - no for yes, no in zip(values[:n], values[n:], strict=True)]
        ranked = sorted(range(1, n + 1), key=lambda i: -scores[i - 1])
        whole = ParsedRanking(tuple(ranked), 0, 0, 0, valid=True, unfinished=False)
        rows.append(_row(doc, ranked, [whole]))
    return rows


def _row(doc: Document, ranked: Sequence[int], parsed: Sequence[ParsedRanking]) -> dict[str, float]:
    n = len(doc["candidates"])
    return {
        **strict_and_repaired(
            ranked, n=n, relevant=set(doc["relevant"]), n_relevant=doc["n_relevant"], measures=QILIN_MEASURES
        ),
        **rates(parsed, shown=sum(len(ids) for ids in doc["windows"])),
        "candidates": float(n),
        "candidates_trimmed": float(doc["candidates_trimmed"]),
        "windows": float(len(doc["windows"])),
        "images_missing": float(doc.get("images_missing", 0)),
    }
