"""What all families with written rankings share: how answers are read, and another tool's reading beside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from qilin_tasks.family import Document, Scorer
from qilin_tasks.metrics.ranked_batch import read_simply, simple_columns
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.rankings import ParsedRanking, parse_ranking
from qilin_tasks.settings import Settings

S = TypeVar("S", bound=Settings)
B = TypeVar("B")


class WrittenRankingScorer(Scorer[S, B]):
    """The model wrote rankings; a family says how a batch is made of them, whoever reads them."""

    @abstractmethod
    def read(
        self,
        docs: Sequence[Document],
        responses: Sequence[Sequence[str | None]],
        parse: Callable[..., ParsedRanking],
    ) -> B:
        """What the metrics read, from answers that `parse(text, n=candidates)` reads."""

    def batch(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> B:
        return self.read(docs, responses, parse_ranking)

    def asides(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
        """`NAME_simple` of ASIDES: answers read by RankLLM's rule, so that one sees what parsing is worth."""
        return simple_columns(self.read(docs, responses, read_simply), self.METRICS, self.ASIDES)

    def shown(self, response: Any) -> str:
        return strip_reasoning(response).text
