"""Retrieval over a pool, shared by the families: one index a pool and process, one result list a question."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DependencyError
from qilin_tasks.reqa.pools import Pool, PoolQuestion
from qilin_tasks.reqa.ranks import Scores
from qilin_tasks.reqa.settings import PoolSettings

Embeddings = NDArray[np.float32]


class Retriever(Protocol):
    """Scores of every candidate for a query, shape (candidates,); higher is better."""

    def scores(self, query: str) -> Scores: ...


class DenseRetriever:
    """Cosine similarity of sentence-transformers embeddings; the candidates' are computed once."""

    def __init__(self, pool: Pool, *, model: str, batch_size: int, device: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer

            self._encoder = SentenceTransformer(model, device=None if device == "auto" else device)
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise DependencyError(
                f"dense_model {model!r} can't be loaded ({str(error).splitlines()[0][:200]}): "
                "pip install 'qilin-tasks[retrieval]', and give a folder or a hub id that sentence-transformers reads"
            ) from error
        self._batch_size = batch_size
        self._candidates = self._encode(list(pool.candidates))
        self._queries: dict[str, Embeddings] = {}

    def _encode(self, texts: list[str]) -> Embeddings:
        embeddings = self._encoder.encode(
            texts, batch_size=self._batch_size, normalize_embeddings=True, show_progress_bar=len(texts) > 1000
        )
        return np.asarray(embeddings, dtype=np.float32)

    def prepare(self, queries: Iterable[str]) -> None:
        """Encodes queries in batches; only the latest ones are kept."""
        distinct = list(dict.fromkeys(queries))
        self._queries = dict(zip(distinct, self._encode(distinct), strict=True)) if distinct else {}

    def scores(self, query: str) -> Scores:
        if query not in self._queries:
            self.prepare([query])
        return np.asarray(self._candidates @ self._queries[query], dtype=np.float64)


@lru_cache(maxsize=4)
def bm25_retriever(pool: Pool) -> Retriever:
    from qilin_tasks.retrieval.bm25 import BM25

    return BM25(pool.candidates, language=pool.language)


@lru_cache(maxsize=2)
def _dense_retriever(pool: Pool, model: str, batch_size: int, device: str) -> Retriever:
    return DenseRetriever(pool, model=model, batch_size=batch_size, device=device)


def retriever(kind: str, pool: Pool, settings: PoolSettings) -> Retriever:
    """The `bm25` (k1 0.9, b 0.4) or `dense` retriever over a pool; raises DependencyError where it can't be loaded."""
    if kind == "bm25":
        return bm25_retriever(pool)
    return _dense_retriever(pool, settings.dense_model, settings.dense_batch_size, settings.dense_device)


def retriever_recipe(kind: str, settings: PoolSettings) -> str:
    """A retriever's part of the signature."""
    return f"dense:{settings.dense_model}" if kind == "dense" else "bm25(k1=0.9,b=0.4)"


def prepare(found: Retriever, queries: Iterable[str]) -> None:
    """Tells a retriever which queries come, so that an encoder takes them in batches."""
    if isinstance(found, DenseRetriever):
        found.prepare(queries)


@lru_cache(maxsize=8)
def _ranked(kind: str, pool: Pool, settings: PoolSettings, k: int) -> tuple[tuple[int, ...], ...]:
    from qilin_tasks.retrieval.bm25 import best

    found = retriever(kind, pool, settings)
    prepare(found, (question.text for question in pool.questions))
    return tuple(
        fill(tuple(int(p) for p in best(_positive(found.scores(question.text), kind), k=k)), pool, question.key, k=k)
        for question in _with_progress(pool, kind)
    )


def first_stage(kind: str, pool: Pool, settings: PoolSettings, *, k: int) -> tuple[tuple[int, ...], ...]:
    """The best `k` candidates of every question of the pool, best first, ties by position.

    Where fewer share a term with the question, candidates drawn by a seed from the question's key fill the list.
    """
    return _ranked(kind, pool, _retrieval_part(settings), k)


def _retrieval_part(settings: PoolSettings) -> PoolSettings:
    """What a result list depends on, so that families with other settings share it."""
    return PoolSettings(**{field.name: getattr(settings, field.name) for field in fields(PoolSettings)})


def _positive(scores: Scores, kind: str) -> Scores:
    """`best` leaves out scores of 0 (no shared term); a cosine may be negative and still be a rank."""
    return scores + 2.0 if kind == "dense" else scores


def _with_progress(pool: Pool, kind: str) -> Iterable[PoolQuestion]:
    from tqdm import tqdm

    bar: Iterable[PoolQuestion] = tqdm(
        pool.questions, desc=f"{pool.name}: {kind} first stage", disable=len(pool.questions) < 2000
    )
    return bar


def fill(found: tuple[int, ...], pool: Pool, key: str, *, k: int) -> tuple[int, ...]:
    """`found` with other candidates drawn at random behind it, until there are `k` (or the whole pool)."""
    wanted = min(k, len(pool.candidates)) - len(found)
    if wanted <= 0:
        return found
    chance = random.Random(f"fill|{pool.name}|{key}")  # noqa: S311
    chosen: list[int] = []
    taken = set(found)
    while len(chosen) < wanted:
        position = chance.randrange(len(pool.candidates))
        if position not in taken:
            taken.add(position)
            chosen.append(position)
    return found + tuple(chosen)
