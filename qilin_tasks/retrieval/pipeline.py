"""Retrievers by name: queries and a corpus in, rankings and the recipe that made them out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.retrieval.corpus import Corpus, ListCorpus
from qilin_tasks.retrieval.fusion import NORMALISATIONS, reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.in_memory import Scores, best_positions, held_encoder, held_index, held_vectors
from qilin_tasks.retrieval.run_identity import check_finite, check_trained_runs
from qilin_tasks.text.tokens import is_blank

Ranking = Sequence[tuple[Any, float]]
Run = Mapping[Any, Ranking]
Recipe = dict[str, Any]

DEFAULT_MODEL = "google-bert/bert-base-chinese"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a retriever needs to know; each reads only its own part."""

    retriever: str
    k: int = 100
    language: str = "zh"
    k1: float = 0.9
    b: float = 0.4
    workers: int = 1
    model: str = DEFAULT_MODEL
    backend: str = "mean-pooling"
    max_length: int | None = None
    batch_size: int = 64
    device: str = "auto"
    query_prompt: str | None = None
    document_prompt: str | None = None
    vectors: Path | None = None
    approximate: bool = False
    constant: float = 60
    weights: tuple[float, ...] = ()
    normalisation: str = "min-max"
    ranker: Path | None = None
    depth: int = 100

    def __post_init__(self) -> None:
        if self.retriever not in RETRIEVERS:
            raise unknown("retriever", self.retriever, RETRIEVERS)
        for name in ("k", "depth", "batch_size", "workers"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} {getattr(self, name)}: choose a number from 1")
        if self.normalisation not in NORMALISATIONS:
            raise unknown("normalisation", self.normalisation, NORMALISATIONS)
        if self.ranker is None and self.retriever in ("mrrank", "routing"):
            raise SettingError(
                f"retriever {self.retriever!r} needs a trained model: --ranker FILE (`qilin-tasks mrrank`)"
            )


@dataclass(frozen=True)
class Task:
    """Queries by key, the corpus, runs to start from (with their recipes), and a way to the texts of documents."""

    queries: Mapping[Any, str]
    corpus: Corpus
    texts: Callable[[Iterable[Any]], Mapping[Any, str]]
    inputs: Sequence[tuple[Run, Recipe]] = ()
    progress: bool = False

    @property
    def query_digest(self) -> str:
        """Identity of the queries, 16 hex digits."""
        return hashlib.sha256(repr(list(self.queries.items())).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Retriever:
    """One way to rank: `recipe` says how before anything is computed, `rank` does it, `folder` keeps parts."""

    def __init__(self, settings: Settings, task: Task) -> None:
        self.settings, self.task = settings, task

    def parameters(self) -> Recipe:
        """What shapes the result, besides queries, corpus and inputs."""
        raise NotImplementedError

    def rank(self, folder: Path) -> list[Ranking]:
        """One ranking a query, in the order of `task.queries`; a query without text finds nothing."""
        rankings = self.ranked(folder)
        return [
            () if is_blank(query) else ranking
            for query, ranking in zip(self.task.queries.values(), rankings, strict=True)
        ]

    def ranked(self, folder: Path) -> list[Ranking]:
        """As `rank`, whatever the queries are."""
        raise NotImplementedError

    def scores(self) -> Iterator[Scores]:
        """For each query the score of every document of a corpus in memory, minus infinity where it is not found."""
        for ranking in self.rank(Path()):
            scores = np.full(self.task.corpus.count, -np.inf)
            for position, score in ranking:
                scores[position] = score
            yield scores

    def recipe(self) -> Recipe:
        """All that shapes the result."""
        return {
            "retriever": self.settings.retriever,
            "top_k": self.settings.k,
            "parameters": self.parameters(),
            "queries": self.task.query_digest,
            "corpus_fingerprint": self.task.corpus.fingerprint,
            "corpus_size": self.task.corpus.count,
            "inputs": [recipe for _, recipe in self.task.inputs],
        }

    def input_rankings(self, *, least: int) -> list[list[Ranking]]:
        """For each query its rankings in the input runs. SettingError for fewer than `least` runs."""
        if len(self.task.inputs) < least:
            raise SettingError(
                f"retriever {self.settings.retriever!r} starts from {least} or more runs, not {len(self.task.inputs)}: "
                "make them with --retriever bm25 and --retriever dense, then pass --runs FILE FILE"
            )
        for run, recipe in self.task.inputs:
            # A TREC file leaves out queries that found nothing; a run of ours names them.
            if "rows" in recipe and (missing := [key for key in self.task.queries if key not in run]):
                raise DataError(
                    f"a run by {recipe.get('retriever')!r} lacks {len(missing)} of {len(self.task.queries)} queries, "
                    f"such as row {missing[0]}; make it again for the same rows"
                )
        found: list[list[Ranking]] = [[run.get(key, ()) for run, _ in self.task.inputs] for key in self.task.queries]
        for key, rankings in zip(self.task.queries, found, strict=True):
            for ranking, (_, recipe) in zip(rankings, self.task.inputs, strict=True):
                check_finite(ranking, query=key, recipe=recipe)
        return found


class Bm25(Retriever):
    """Anserini's BM25 in one pass over the corpus."""

    def parameters(self) -> Recipe:
        chosen = self.settings
        return {"analyzer": f"lucene-{chosen.language}", "k1": chosen.k1, "b": chosen.b}

    def ranked(self, folder: Path) -> list[Ranking]:
        from qilin_tasks.retrieval.corpus_bm25 import search_corpus

        chosen = self.settings
        if isinstance(self.task.corpus, ListCorpus):
            index = held_index(self.task.corpus, chosen.language, chosen.k1, chosen.b)
            return [index.search(query, k=chosen.k) for query in self.task.queries.values()]
        return [
            *search_corpus(
                list(self.task.queries.values()),
                self.task.corpus,
                language=chosen.language,
                k=chosen.k,
                k1=chosen.k1,
                b=chosen.b,
                workers=chosen.workers,
                folder=folder,
                progress=self.task.progress,
            )
        ]

    def scores(self) -> Iterator[Scores]:
        if not isinstance(self.task.corpus, ListCorpus):
            raise TypeError("scores of a whole corpus are for one in memory")
        index = held_index(self.task.corpus, self.settings.language, self.settings.k1, self.settings.b)
        for query in self.task.queries.values():
            scores = index.scores(query)
            yield np.where(scores > 0, scores, -np.inf)


class Dense(Retriever):
    """A bi-encoder; `vectors` names a folder in which the corpus's vectors stay for the next time."""

    def __init__(self, settings: Settings, task: Task) -> None:
        from qilin_tasks.retrieval.encoders import load_encoder

        super().__init__(settings, task)
        load = held_encoder if isinstance(task.corpus, ListCorpus) else load_encoder
        self._encoder = load(
            settings.model,
            backend=settings.backend,
            batch_size=settings.batch_size,
            max_length=settings.max_length,
            device=settings.device,
            query_prompt=settings.query_prompt,
            document_prompt=settings.document_prompt,
        )

    def parameters(self) -> Recipe:
        return {"encoder": self._encoder.signature, "search": "faiss" if self.settings.approximate else "exact"}

    def _queries(self) -> NDArray[np.float32]:
        from qilin_tasks.retrieval.encoders import warn_of_unknown_tokens

        queries = list(self.task.queries.values())
        warn_of_unknown_tokens(self._encoder, self.settings.model, queries, what="queries")
        return self._encoder.encode(queries, query=True)

    def scores(self) -> Iterator[Scores]:
        if not isinstance(self.task.corpus, ListCorpus):
            raise TypeError("scores of a whole corpus are for one in memory")
        vectors = held_vectors(self.task.corpus, self._encoder)
        for query, text in zip(self._queries(), self.task.queries.values(), strict=True):
            scores = np.asarray(vectors @ query, dtype=np.float64)
            yield np.full(len(scores), -np.inf) if is_blank(text) else np.where(np.isnan(scores), -np.inf, scores)

    def ranked(self, folder: Path) -> list[Ranking]:
        from qilin_tasks.retrieval.dense_search import search_faiss, search_vectors
        from qilin_tasks.retrieval.vectors import encode_corpus

        if isinstance(self.task.corpus, ListCorpus):
            return [best_positions(scores, k=self.settings.k) for scores in self.scores()]
        stored = encode_corpus(
            self.task.corpus, self._encoder, self.settings.vectors or folder, progress=self.task.progress
        )
        queries = self._queries()
        if self.settings.approximate:
            return [*search_faiss(queries, stored.vectors, stored.ids, k=self.settings.k)]
        return [*search_vectors(queries, stored.vectors, stored.ids, k=self.settings.k, progress=self.task.progress)]


class Rerank(Retriever):
    """A cross-encoder over the first `depth` documents of one run."""

    def __init__(self, settings: Settings, task: Task) -> None:
        from qilin_tasks.retrieval.rerank import CrossEncoderScorer

        super().__init__(settings, task)
        self._scorer = CrossEncoderScorer(
            settings.model, batch_size=settings.batch_size, max_length=settings.max_length or 256
        )

    def parameters(self) -> Recipe:
        return {"scorer": self._scorer.signature, "depth": self.settings.depth}

    def ranked(self, folder: Path) -> list[Ranking]:
        from qilin_tasks.retrieval.rerank import rerank

        first = [rankings[0] for rankings in self.input_rankings(least=1)]
        return [
            *rerank(
                list(self.task.queries.values()),
                first,
                self.task.texts,
                self._scorer,
                depth=self.settings.depth,
                k=self.settings.k,
                folder=folder,
                progress=self.task.progress,
            )
        ]


class Rrf(Retriever):
    """Reciprocal rank fusion of two or more runs."""

    def parameters(self) -> Recipe:
        return {"constant": self.settings.constant, "depth": self.settings.depth}

    def ranked(self, folder: Path) -> list[Ranking]:
        return [
            reciprocal_rank_fusion(
                [ranking[: self.settings.depth] for ranking in rankings],
                k=self.settings.k,
                constant=self.settings.constant,
            )
            for rankings in self.input_rankings(least=2)
        ]


class Weighted(Retriever):
    """Normalised scores of two or more runs in a weighted sum (equal weights where none are given)."""

    def _weights(self) -> list[float]:
        return list(self.settings.weights) or [1 / len(self.task.inputs)] * len(self.task.inputs)

    def parameters(self) -> Recipe:
        chosen = self.settings
        return {"weights": list(chosen.weights), "normalisation": chosen.normalisation, "depth": chosen.depth}

    def ranked(self, folder: Path) -> list[Ranking]:
        return [
            weighted_sum(
                [ranking[: self.settings.depth] for ranking in rankings],
                weights=self._weights(),
                k=self.settings.k,
                normalisation=self.settings.normalisation,
            )
            for rankings in self.input_rankings(least=2)
        ]


class Learned(Retriever):
    """MrRank's RankNet, or its router: a trained model over two or more runs."""

    def __init__(self, settings: Settings, task: Task) -> None:
        from qilin_tasks.retrieval.ranker_file import load_ranker

        super().__init__(settings, task)
        if settings.ranker is None:
            raise SettingError(f"retriever {settings.retriever!r} needs --ranker FILE")
        self._ranker = load_ranker(settings.ranker, kind=settings.retriever)
        check_trained_runs(settings.ranker, self._ranker.recipe, [recipe for _, recipe in task.inputs])

    def parameters(self) -> Recipe:
        return {"ranker": self._ranker.signature}

    def ranked(self, folder: Path) -> list[Ranking]:
        return [self._ranker.rank(rankings, k=self.settings.k) for rankings in self.input_rankings(least=2)]


class Imported(Retriever):
    """A run as it is, for instance from another tool's TREC file."""

    def parameters(self) -> Recipe:
        return {}

    def ranked(self, folder: Path) -> list[Ranking]:
        return [rankings[0][: self.settings.k] for rankings in self.input_rankings(least=1)]


RETRIEVERS: dict[str, type[Retriever]] = {
    "bm25": Bm25,
    "dense": Dense,
    "rrf": Rrf,
    "weighted": Weighted,
    "mrrank": Learned,
    "routing": Learned,
    "rerank": Rerank,
    "run": Imported,
}


def retriever(settings: Settings, task: Task) -> Retriever:
    """The retriever of `settings.retriever`, models loaded; nothing is computed yet."""
    return RETRIEVERS[settings.retriever](settings, task)
