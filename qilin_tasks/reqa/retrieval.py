"""Retrieval over a pool by the pipeline's retrievers: first stages, contexts, and what a written sentence finds."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.reqa.pools import Pool
from qilin_tasks.reqa.ranks import Scores
from qilin_tasks.reqa.settings import FUSIONS, PoolSettings
from qilin_tasks.retrieval.corpus import ListCorpus
from qilin_tasks.retrieval.pipeline import Ranking, Recipe, Retriever, Run, Settings, Task, retriever
from qilin_tasks.signature import digest

# Documents of each run that a fusion reads.
DEPTH = 100


@lru_cache(maxsize=4)
def _corpus(pool: Pool) -> ListCorpus:
    return ListCorpus(pool.candidates)


def pool_retriever(
    kind: str, pool: Pool, settings: PoolSettings, queries: Mapping[str, str], *, k: int = DEPTH
) -> Retriever:
    """A retriever of the pipeline over the pool, for queries by the question's key; models are loaded.

    Fusions start from `run_file`s, or else from BM25 and the dense retriever. Raises SettingError, DataError or
    DependencyError for what is missing.
    """
    chosen = Settings(
        retriever=kind,
        k=k,
        language=pool.language,
        model=settings.dense_model,
        backend="sentence-transformers",
        batch_size=settings.dense_batch_size,
        device=settings.dense_device,
        query_prompt=settings.dense_query_prompt,
        document_prompt=settings.dense_document_prompt,
        weights=settings.weights,
        ranker=None if settings.ranker_file is None else Path(settings.ranker_file),
        depth=DEPTH,
    )
    inputs: Sequence[tuple[Run, Recipe]] = ()
    if kind == "run" or (kind in FUSIONS and settings.run_files):
        inputs = [_read_run(path, pool, queries) for path in settings.run_files]
        if not inputs:
            raise SettingError(
                f"retriever {kind!r}: give the run as run_file, a TREC run or CSV over the question keys"
            )
    elif kind in FUSIONS:
        inputs = [_computed(name, pool, settings, queries) for name in ("bm25", "dense")]
    corpus = _corpus(pool)
    task = Task(
        queries=queries,
        corpus=corpus,
        texts=lambda ids: {position: corpus.texts[position] for position in ids},
        inputs=inputs,
        progress=len(queries) >= 2000,
    )
    return retriever(chosen, task)


def _computed(kind: str, pool: Pool, settings: PoolSettings, queries: Mapping[str, str]) -> tuple[Run, Recipe]:
    made = pool_retriever(kind, pool, settings, queries)
    return dict(zip(queries, _rank(made), strict=True)), made.recipe()


def _rank(made: Retriever) -> list[Ranking]:
    with tempfile.TemporaryDirectory(prefix="qilin-tasks-") as folder:
        return made.rank(Path(folder))


def _read_run(path: str, pool: Pool, queries: Mapping[str, str]) -> tuple[Run, Recipe]:
    """A run whose queries are question keys and whose documents are the pool's ids (`Pool.ids`)."""
    from qilin_tasks.sources.run_rankings import read_trec

    positions = {identifier: position for position, identifier in enumerate(pool.ids)}
    stored, recipe = read_trec(Path(path))
    found: dict[Any, list[tuple[int, float]]] = {}
    for query, ranking in stored.items():
        unknown_ids = [str(document) for document, _ in ranking if str(document) not in positions]
        if unknown_ids:
            raise DataError(
                f"{path}: query {query} names the document {unknown_ids[0]!r}, which the pool of {pool.name} lacks: "
                f"its ids are {pool.ids[0]} to {pool.ids[-1]}, in order of first appearance"
            )
        found[str(query)] = [(positions[str(document)], score) for document, score in ranking]
    if not any(key in found for key in queries):
        raise DataError(
            f"{path}: none of its {len(found)} queries is a question of {pool.name}, whose keys are like "
            f"{next(iter(queries))!r}"
        )
    return found, recipe


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}); give a file that is there") from error


def retriever_recipe(kind: str, settings: PoolSettings) -> str:
    """A retriever's part of the signature."""
    if kind == "bm25":
        return "bm25(k1=0.9,b=0.4)"
    if kind == "dense":
        prompts = [settings.dense_query_prompt, settings.dense_document_prompt]
        given = "" if prompts == [None, None] else f"(prompts={digest(prompts, length=8)})"
        return f"dense:{settings.dense_model}{given}"
    if settings.run_files:
        inputs = "+".join(_digest(path)[:12] for path in settings.run_files)
    else:
        inputs = "+".join(retriever_recipe(name, settings) for name in ("bm25", "dense"))
    options = {
        "weighted": ",".join(map(str, settings.weights)) or "equal",
        "mrrank": _digest(settings.ranker_file)[:12] if settings.ranker_file else "",
        "routing": _digest(settings.ranker_file)[:12] if settings.ranker_file else "",
    }
    return f"{kind}({options[kind]};{inputs})" if kind in options else f"{kind}({inputs})"


def matches(kind: str, pool: Pool, settings: PoolSettings, queries: Mapping[str, str]) -> Iterator[Scores]:
    """For each query the score of every candidate, minus infinity where it is not found; nothing for a blank one."""
    return pool_retriever(kind, pool, settings, queries).scores()


@lru_cache(maxsize=8)
def _ranked(kind: str, pool: Pool, settings: PoolSettings, k: int) -> tuple[tuple[int, ...], ...]:
    queries = {question.key: question.text for question in pool.questions}
    rankings = _rank(pool_retriever(kind, pool, settings, queries, k=k))
    return tuple(
        fill(tuple(position for position, _ in ranking), pool, key, k=k)
        for key, ranking in zip(queries, rankings, strict=True)
    )


def first_stage(kind: str, pool: Pool, settings: PoolSettings, *, k: int) -> tuple[tuple[int, ...], ...]:
    """The best `k` candidates of every question of the pool, best first, ties by position.

    Where fewer are found, candidates drawn by a seed from the question's key fill the list.
    """
    return _ranked(kind, pool, _retrieval_part(settings), k)


def _retrieval_part(settings: PoolSettings) -> PoolSettings:
    """What a result list depends on, so that families with other settings share it."""
    return PoolSettings(**{field.name: getattr(settings, field.name) for field in fields(PoolSettings)})


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
