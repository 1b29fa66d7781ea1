"""Responses to per-document scores for the three ways of retrieving: listwise, likelihood, generated sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.family import Document, Scorer
from qilin_tasks.metrics.answer_batch import count
from qilin_tasks.metrics.hits import Floats, Hits
from qilin_tasks.metrics.metric import Metric, Table
from qilin_tasks.metrics.ranked_batch import RATES, SUFFIXES, strict_and_repaired, whole
from qilin_tasks.metrics.recall import success
from qilin_tasks.metrics.reciprocal_rank import reciprocal_rank
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.rankings import ParsedRanking
from qilin_tasks.ranking_scorer import WrittenRankingScorer
from qilin_tasks.reqa.rankings import CandidateRanks, Judged, candidate_ranks
from qilin_tasks.reqa.ranks import best_rank, document_scores
from qilin_tasks.reqa.retrieval import matches, pool_retriever, retriever_recipe
from qilin_tasks.reqa.settings import CandidateSettings, GenerateSettings, LikelihoodSettings, PoolSettings


@dataclass(frozen=True)
class RankedSentences:
    """Questions with the ranks that came of them, by suffix, and the parsed answers behind them."""

    docs: Sequence[Document]
    ranks: Mapping[str, CandidateRanks]
    parsed: Sequence[Sequence[ParsedRanking]]

    @property
    def shown(self) -> list[int]:
        """Candidates in the prompt of each question; 1 where the whole pool is searched by one written sentence."""
        return [max(len(doc.get("candidates", ())), 1) for doc in self.docs]


def _sentence(function: Callable[[Hits], Floats]) -> Callable[[RankedSentences, str], Floats]:
    return lambda batch, suffix: function(Hits.first_only(batch.ranks[suffix].sentence))


def _document(function: Callable[[Hits], Floats]) -> Callable[[RankedSentences, str], Floats]:
    return lambda batch, suffix: function(Hits.first_only(batch.ranks[suffix].document))


METRICS: Table[RankedSentences] = {
    **strict_and_repaired(
        {
            "mrr": ("reciprocal rank of the first answer sentence", _sentence(reciprocal_rank)),
            "r@1": ("an answer sentence comes first", _sentence(lambda hits: success(hits, 1))),
            "r@5": ("an answer sentence among the first 5", _sentence(lambda hits: success(hits, 5))),
            "r@10": ("an answer sentence among the first 10", _sentence(lambda hits: success(hits, 10))),
            "doc_mrr": ("reciprocal rank of the answer's paragraph", _document(reciprocal_rank)),
        },
        headline=("mrr", "r@1"),
    ),
    "candidate_recall": Metric(
        about="share of questions with an answer sentence among the candidates",
        score=lambda batch: [float(found) for found in batch.ranks[""].found],
        higher_is_better=True,
    ),
    **RATES,
    "candidates_trimmed": count("candidates whose text was cut", "candidates_trimmed"),
}


class _ReQAScorer(Scorer[Any, RankedSentences]):
    METRICS: ClassVar[Table[Any]] = METRICS

    def document_parts(self) -> dict[str, Any]:
        return pool_parts(self.settings)


def pool_parts(settings: PoolSettings) -> dict[str, Any]:
    """The signature's parts of the pool."""
    return {
        "set": settings.set,
        "pool": settings.pool().fingerprint,
        "limit": settings.corpus_limit if settings.source.beir else None,
        "seed": settings.shuffle_seed,
    }


class ListwiseScorer(WrittenRankingScorer[Any, RankedSentences], _ReQAScorer):
    """`reqa_<set>`: what the model ranked (strict), and with the rest appended (repaired)."""

    settings: CandidateSettings
    ASIDES: ClassVar[tuple[str, ...]] = ("mrr",)

    def read(
        self,
        docs: Sequence[Document],
        responses: Sequence[Sequence[str | None]],
        parse: Callable[..., ParsedRanking],
    ) -> RankedSentences:
        parsed = [parse(response[0], n=len(doc["candidates"])) for doc, response in zip(docs, responses, strict=True)]
        judged = [Judged(doc["relevant"], doc["owners"], doc["documents"]) for doc in docs]
        ranks = candidate_ranks([ranking.ids for ranking in parsed], judged)
        return RankedSentences(docs, ranks, [[ranking] for ranking in parsed])

    def document_parts(self) -> dict[str, Any]:
        return {
            **super().document_parts(),
            "stage1": retriever_recipe(self.settings.first_stage, self.settings),
            "k": self.settings.top_k,
            "chars": self.settings.candidate_chars,
        }


class LikelihoodScorer(ListwiseScorer):
    """`responses[i]` holds (log-likelihood, greedy) of each candidate in order; ties get their mean rank.

    The log-likelihood is divided by the UTF-8 bytes of what was scored. Raises DataError for a value that is no
    number: the engine failed, which is no score.
    """

    settings: LikelihoodSettings
    # Nothing was written that another rule could read.
    ASIDES = ()

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> RankedSentences:
        pairs = []
        for doc, values in zip(docs, responses, strict=True):
            scores = np.array([float(value[0]) for value in values])
            if len(scores) != len(doc["candidates"]) or np.isnan(scores).any():
                raise DataError(
                    f"document {doc['doc_key']!r}: {len(scores)} log-likelihoods ({scores[:3]}…) for "
                    f"{len(doc['candidates'])} candidates; each must be a number"
                )
            scores /= lengths(doc, direction=self.settings.direction)
            gold = [number - 1 for number in doc["relevant"]]
            pairs.append(_ranks_over(scores, gold=gold, owners=np.array(doc["owners"]), documents=doc["documents"]))
        ranks = _both(pairs, found=[bool(doc["relevant"]) for doc in docs])
        return RankedSentences(docs, ranks, [[whole(range(1, len(doc["candidates"]) + 1))] for doc in docs])

    def document_parts(self) -> dict[str, Any]:
        return {**super().document_parts(), "of": self.settings.direction, "per": "byte"}

    def shown(self, response: Any) -> Any:
        return response


class GenerateScorer(_ReQAScorer):
    """The written sentence is the query over the whole pool; a candidate that was written out exactly comes first.

    Strict: an answer that shares nothing with the gold sentence has not retrieved it; repaired: ReQA's rank, with ties
    (all candidates for an empty answer) averaged.
    """

    settings: GenerateSettings

    def check(self) -> None:
        pool = self.settings.pool()
        question = pool.questions[0]
        pool_retriever(self.settings.matcher, pool, self.settings, {question.key: question.text})

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[str | None]]) -> RankedSentences:
        pool = self.settings.pool()
        owners = np.array(pool.owners)
        exact: dict[str, list[int]] = {}
        for position, text in enumerate(pool.candidates):
            exact.setdefault(" ".join(text.split()), []).append(position)
        answers = [strip_reasoning(response[0]) for response in responses]
        queries = [" ".join(answer.text.split()) for answer in answers]
        by_key = {doc["doc_key"]: query for doc, query in zip(docs, queries, strict=True)}
        found_by = matches(self.settings.matcher, pool, self.settings, by_key)
        pairs, strict, parsed = [], [], []
        for doc, answer, query, found in zip(docs, answers, queries, found_by, strict=True):
            retrieved = found > -math.inf
            # What is not found ties behind all that is.
            scores = np.where(retrieved, found, found[retrieved].min(initial=0.0) - 1)
            if query in exact:
                scores[exact[query]] = math.inf
                retrieved[exact[query]] = True
            sentence, document = _ranks_over(scores, gold=doc["gold"], owners=owners, documents=doc["documents"])
            pairs.append((sentence, document))
            if not retrieved[doc["gold"]].any():
                sentence = math.inf
            if not retrieved[np.isin(owners, doc["documents"])].any():
                document = math.inf
            strict.append((sentence, document))
            written = bool(query)
            ids = (1,) if written else ()
            parsed.append([ParsedRanking(ids, 0, 0, 1 - len(ids), valid=written, unfinished=answer.unfinished)])
        has_gold = [bool(doc["gold"]) for doc in docs]
        ranks = {"": _both(strict, found=has_gold)[""], "_repaired": _both(pairs, found=has_gold)["_repaired"]}
        return RankedSentences(docs, ranks, parsed)

    def document_parts(self) -> dict[str, Any]:
        return {**super().document_parts(), "match": retriever_recipe(self.settings.matcher, self.settings)}

    def shown(self, response: Any) -> str:
        return strip_reasoning(response).text


def lengths(doc: Document, *, direction: str) -> Floats:
    """The UTF-8 bytes of what is scored for each candidate, shape (candidates,)."""
    texts = [doc["question"]] * len(doc["candidates"]) if direction == "question" else doc["candidates"]
    return np.array([max(len(text.encode("utf-8", "replace")), 1) for text in texts], dtype=np.float64)


def _ranks_over(scores: Floats, *, gold: Sequence[int], owners: Any, documents: Sequence[int]) -> tuple[float, float]:
    """Ranks of the gold sentence and its document by a score for every candidate; infinity where it is none."""
    per_document = document_scores(scores, owners)
    present = [
        document for document in documents if document < len(per_document) and per_document[document] > -math.inf
    ]
    return (
        best_rank(scores, gold) if gold else math.inf,
        best_rank(per_document, present) if present else math.inf,
    )


def _both(pairs: Sequence[tuple[float, float]], *, found: Sequence[bool]) -> dict[str, CandidateRanks]:
    """The same ranks for both readings: a score for every candidate leaves nothing to repair."""
    sentence, document = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return dict.fromkeys(SUFFIXES, CandidateRanks(sentence, document, np.array(found, dtype=np.bool_)))
