"""Responses to per-document scores for the three ways of retrieving: listwise, likelihood, generated sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.rankings import parse_ranking
from qilin_tasks.scoring.ranking import rates
from qilin_tasks.scoring.reqa_rankings import Judged, score_rankings
from qilin_tasks.scoring.reqa_ranks import Scores, best_rank, document_scores, rank_values
from qilin_tasks.scoring.reqa_retrieval import prepare, retriever
from qilin_tasks.scoring.reqa_settings import CandidateSettings, GenerateSettings, LikelihoodSettings

Document = Mapping[str, Any]

SENTENCE = ("mrr", "r@1", "r@5", "r@10")
STRICT = (*SENTENCE, "doc_mrr")
REPAIRED = tuple(f"{name}_repaired" for name in STRICT)
RATES = ("candidate_recall", "valid_rate", "duplicate_rate", "missing_rate", "invented_rate")
COUNTS = ("unfinished_reasoning_rate", "candidates_trimmed")
METRICS = (*STRICT, *REPAIRED, *RATES, *COUNTS)

_NOTHING_RANKED = dict.fromkeys(STRICT, 0.0)


def score_listwise(
    docs: Sequence[Document], responses: Sequence[str | None], settings: CandidateSettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document: what the model ranked (strict), and with the rest appended (repaired)."""
    parsed = [parse_ranking(response, n=len(doc["candidates"])) for doc, response in zip(docs, responses, strict=True)]
    judged = [Judged(doc["relevant"], doc["owners"], doc["documents"]) for doc in docs]
    values = score_rankings([ranking.ids for ranking in parsed], judged)
    for doc, ranking, row in zip(docs, parsed, values, strict=True):
        row.update(rates([ranking], shown=len(doc["candidates"])))
        row["candidates_trimmed"] = float(doc["candidates_trimmed"])
    return values


def score_likelihood(
    docs: Sequence[Document], responses: Sequence[Sequence[Any]], settings: LikelihoodSettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document; `responses[i]` holds (log-likelihood, greedy) of each candidate in order.

    The log-likelihood is divided by the UTF-8 bytes of what was scored. Ties get their mean rank. Raises DataError
    for a value that is no number: the engine failed, which is no score.
    """
    rows = []
    for doc, pairs in zip(docs, responses, strict=True):
        scores = np.array([float(pair[0]) for pair in pairs])
        if len(scores) != len(doc["candidates"]) or np.isnan(scores).any():
            raise DataError(
                f"document {doc['doc_key']!r}: {len(scores)} log-likelihoods ({scores[:3]}…) for "
                f"{len(doc['candidates'])} candidates; each must be a number"
            )
        scores /= lengths(doc, direction=settings.direction)
        row = _over_pool(
            scores,
            gold=[number - 1 for number in doc["relevant"]],
            owners=np.array(doc["owners"]),
            documents=doc["documents"],
        )
        rows.append({**row, **_complete(doc["relevant"]), "candidates_trimmed": float(doc["candidates_trimmed"])})
    return rows


def lengths(doc: Document, *, direction: str) -> Scores:
    """The UTF-8 bytes of what is scored for each candidate, shape (candidates,)."""
    texts = [doc["question"]] * len(doc["candidates"]) if direction == "question" else doc["candidates"]
    return np.array([max(len(text.encode("utf-8", "replace")), 1) for text in texts], dtype=np.float64)


def score_generate(
    docs: Sequence[Document], responses: Sequence[str | None], settings: GenerateSettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document: the written sentence is the query over the whole pool.

    A candidate that was written out exactly comes first. Strict: an answer that shares nothing with the gold sentence
    has not retrieved it; repaired: ReQA's rank, with ties (all candidates for an empty answer) averaged.
    """
    pool = settings.pool()
    matcher = retriever(settings.matcher, pool, settings)
    owners = np.array(pool.owners)
    exact: dict[str, list[int]] = {}
    for position, text in enumerate(pool.candidates):
        exact.setdefault(" ".join(text.split()), []).append(position)
    answers = [strip_reasoning(response) for response in responses]
    queries = [" ".join(answer.text.split()) for answer in answers]
    prepare(matcher, filter(None, queries))
    rows = []
    for doc, answer, query in zip(docs, answers, queries, strict=True):
        scores = matcher.scores(query) if query else np.zeros(len(pool.candidates))
        if query in exact:
            scores = scores.copy()
            scores[exact[query]] = math.inf
        row = _over_pool(scores, gold=doc["gold"], owners=owners, documents=doc["documents"])
        # A BM25 score of 0 is no match at all.
        if not query or (settings.matcher == "bm25" and scores[doc["gold"]].max() <= 0):
            row.update(dict.fromkeys(SENTENCE, 0.0))
        if not query or (settings.matcher == "bm25" and scores[np.isin(owners, doc["documents"])].max() <= 0):
            row["doc_mrr"] = 0.0
        row.update(_complete(doc["gold"]), valid_rate=float(bool(query)), missing_rate=float(not query))
        row["unfinished_reasoning_rate"] = float(answer.unfinished)
        rows.append(row)
    return rows


def _over_pool(scores: Scores, *, gold: Sequence[int], owners: Any, documents: Sequence[int]) -> dict[str, float]:
    """Strict and repaired values of a score for every candidate; 0 where the gold sentence is no candidate."""
    values = dict(_NOTHING_RANKED)
    rank = best_rank(scores, gold) if gold else math.inf
    per_document = document_scores(scores, owners)
    present = [
        document for document in documents if document < len(per_document) and per_document[document] > -math.inf
    ]
    document_rank = best_rank(per_document, present) if present else math.inf
    values.update(rank_values(rank, document_rank))
    return {**values, **{f"{name}_repaired": value for name, value in values.items()}}


def _complete(gold: Sequence[int]) -> dict[str, float]:
    """The rates of a ranking that holds every candidate, as scores always give."""
    return {
        "candidate_recall": float(bool(gold)),
        "valid_rate": 1.0,
        "duplicate_rate": 0.0,
        "missing_rate": 0.0,
        "invented_rate": 0.0,
        "unfinished_reasoning_rate": 0.0,
        "candidates_trimmed": 0.0,
    }
