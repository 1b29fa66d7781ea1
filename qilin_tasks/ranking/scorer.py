"""Responses to the metrics of Table 10, one dict a request, for both ways of asking."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.family import Document, Scorer
from qilin_tasks.metrics.answer_batch import count
from qilin_tasks.metrics.hits import Floats, Hits, hit_ranks
from qilin_tasks.metrics.metric import Metric, Table
from qilin_tasks.metrics.ranked_batch import RATES, strict_and_repaired, whole
from qilin_tasks.metrics.ranking import QILIN_MEASURES, RANKING_METRICS, parse_measure, repair
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.grades import GRADE_RULE, parse_grade
from qilin_tasks.parsing.rankings import ParsedRanking
from qilin_tasks.ranking.settings import GradedVisionSettings, ListwiseSettings, RankingSettings, VisionSettings
from qilin_tasks.ranking.windows import MERGE, merge
from qilin_tasks.ranking_scorer import WrittenRankingScorer
from qilin_tasks.text.notes import RENDERING


@dataclass
class RankedRequests:
    """Requests with the one ranking that came of each (ids of 1..n, best first) and the answers behind it."""

    docs: Sequence[Document]
    rankings: Sequence[Sequence[int]]
    parsed: Sequence[Sequence[ParsedRanking]]

    @property
    def shown(self) -> list[int]:
        """Candidates over all prompts of each document."""
        return [sum(len(ids) for ids in doc["windows"]) for doc in self.docs]

    @cached_property
    def hits(self) -> dict[str, Hits]:
        """By suffix: of what was ranked, and of the rankings with the rest appended in shown order."""
        complete = [
            repair(ranking, range(1, len(doc["candidates"]) + 1))
            for doc, ranking in zip(self.docs, self.rankings, strict=True)
        ]
        return {"": self._hits(self.rankings), "_repaired": self._hits(complete)}

    def _hits(self, rankings: Sequence[Sequence[int]]) -> Hits:
        ranks = [hit_ranks(ranking, set(doc["relevant"])) for doc, ranking in zip(self.docs, rankings, strict=True)]
        return Hits.of(ranks, [doc["n_relevant"] for doc in self.docs])


def _measure(batch: RankedRequests, suffix: str, *, measure: str) -> Floats:
    name, k = parse_measure(measure)
    return RANKING_METRICS[name](batch.hits[suffix], k)


METRICS: Table[RankedRequests] = {
    **strict_and_repaired(
        {m: (m, partial(_measure, measure=m)) for m in QILIN_MEASURES}, headline=("mrr@10", "map@10")
    ),
    **RATES,
    "candidates": count("candidates of the request", "candidates"),
    "candidates_trimmed": count("candidates whose text was cut", "candidates_trimmed"),
    "windows": count("prompts of the request", "windows"),
}
VISION_METRICS: Table[RankedRequests] = {
    **METRICS,
    "images_missing": count("candidates without a usable cover", "images_missing", higher_is_better=False),
}


class _RankingScorer(Scorer[RankingSettings, RankedRequests]):
    METRICS: ClassVar[Table[Any]] = METRICS

    def document_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {
            "config": chosen.config,
            "rows": chosen.rows or "all",
            "shuffle": chosen.shuffle_seed,
            "note": chosen.note_chars,
            "query": chosen.query_chars,
            "history": chosen.history if chosen.config == "recommendation_test" else None,
            "shown": RENDERING,
        }


class ListwiseScorer(WrittenRankingScorer[RankingSettings, RankedRequests], _RankingScorer):
    """The model wrote a ranking of each window: `responses[i][w]` is the answer to window w of document i."""

    settings: ListwiseSettings
    ASIDES = ("mrr@10", "map@10")

    def read(
        self,
        docs: Sequence[Document],
        responses: Sequence[Sequence[str | None]],
        parse: Callable[..., ParsedRanking],
    ) -> RankedRequests:
        rankings, parsed = [], []
        for doc, answers in zip(docs, responses, strict=True):
            shown: list[list[int]] = doc["windows"]
            parsed.append([parse(text, n=len(ids)) for text, ids in zip(answers, shown, strict=True)])
            ranked = [[ids[i - 1] for i in ranking.ids] for ranking, ids in zip(parsed[-1], shown, strict=True)]
            rankings.append(merge(ranked, shown, n=len(doc["candidates"])))
        return RankedRequests(docs, rankings, parsed)

    def document_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {**super().document_parts(), "total": chosen.context_chars, "window": chosen.window, "merge": MERGE}


class VisionScorer(ListwiseScorer):
    """As listwise; a note's cover is part of what is shown."""

    settings: VisionSettings
    METRICS: ClassVar[Table[Any]] = VISION_METRICS

    def document_parts(self) -> dict[str, Any]:
        return {**super().document_parts(), "image": self.settings.image_max_side}


@dataclass
class GradedRequests(RankedRequests):
    """`grades[i]` holds the grade of each candidate of document i, None without one."""

    grades: Sequence[Sequence[float | None]] = ()

    @property
    def tied(self) -> list[float]:
        """The share of a document's candidates whose grade another candidate has too."""
        counted = [Counter(grade for grade in grades if grade is not None) for grades in self.grades]
        return [
            sum(number for number in counts.values() if number > 1) / len(grades)
            for counts, grades in zip(counted, self.grades, strict=True)
        ]


class GradedVisionScorer(_RankingScorer):
    """The model wrote a grade of each candidate; the best first, ties in shown order, ungraded ones not ranked."""

    settings: GradedVisionSettings
    METRICS: ClassVar[Table[Any]] = {
        **VISION_METRICS,
        "tied_rate": Metric(
            about="share of the candidates whose grade another one has",
            score=lambda batch: batch.tied,
            higher_is_better=False,
        ),
    }

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[str | None]]) -> GradedRequests:
        rankings, parsed, grades = [], [], []
        for doc, answers in zip(docs, responses, strict=True):
            read = [parse_grade(text) for text in answers]
            graded = [grade.value for grade in read]
            places = [place for place, value in enumerate(graded, start=1) if value is not None]
            if len(answers) != len(doc["candidates"]):
                raise DataError(
                    f"document {doc['doc_key']!r}: {len(answers)} grades for {len(doc['candidates'])} candidates"
                )
            rankings.append(sorted(places, key=lambda place: -(graded[place - 1] or 0.0)))
            parsed.append(
                [
                    ParsedRanking(
                        () if grade.value is None else (place,),
                        duplicates=0,
                        missing=int(grade.value is None),
                        invented=int(grade.out_of_range),
                        valid=grade.valid,
                        unfinished=grade.unfinished,
                    )
                    for place, grade in enumerate(read, start=1)
                ]
            )
            grades.append(graded)
        return GradedRequests(docs, rankings, parsed, grades)

    def document_parts(self) -> dict[str, Any]:
        return {**super().document_parts(), "image": f"stacked{self.settings.image_side}", "grade": GRADE_RULE}

    def shown(self, response: Any) -> str:
        return strip_reasoning(response).text


class PointwiseScorer(_RankingScorer):
    """The log-likelihood of yes minus no ranks, ties stay in shown order.

    `responses[i]` holds (log-likelihood, greedy) of the yes of each of the n candidates, then of their no. Raises
    DataError for a value that is no number: the engine failed, which is no score.
    """

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> RankedRequests:
        rankings = []
        for doc, pairs in zip(docs, responses, strict=True):
            n = len(doc["candidates"])
            values = [float(pair[0]) for pair in pairs]
            if len(values) != 2 * n or any(math.isnan(value) for value in values):
                raise DataError(
                    f"document {doc['doc_key']!r}: {len(values)} log-likelihoods ({values[:3]}…) for a yes and a no of "
                    f"each of {n} candidates; each must be a number, so the engine failed: run it again"
                )
            scores = [0.0 if yes == no else yes - no for yes, no in zip(values[:n], values[n:], strict=True)]
            order = np.argsort([-score for score in scores], kind="stable")
            rankings.append((order + 1).tolist())
        return RankedRequests(docs, rankings, [[whole(ranking)] for ranking in rankings])
