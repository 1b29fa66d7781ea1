"""A retriever's rankings of all questions of a pool, as arrays in memory and on disk: training sets hold millions."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.files import write_whole
from qilin_tasks.reqa.pools import Pool
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import Encoder

logger = logging.getLogger(__name__)

Ranking = list[tuple[int, float]]
#: The retriever that needs no model; every other name is an encoder's folder or its name on the hub.
BM25_NAME = "bm25"


@dataclass(frozen=True, eq=False)
class StoredRankings(Sequence[Ranking]):
    """`positions` int32 and `scores` float64, both (questions, depth); -1 behind the end of a shorter ranking."""

    positions: NDArray[np.int32]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Ranking: ...
    @overload
    def __getitem__(self, index: slice) -> StoredRankings: ...
    def __getitem__(self, index: int | slice) -> Ranking | StoredRankings:
        if isinstance(index, slice):
            return StoredRankings(self.positions[index], self.scores[index])
        held = int(np.count_nonzero(self.positions[index] >= 0))
        return list(zip(self.positions[index, :held].tolist(), self.scores[index, :held].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Joined(Sequence[list[Ranking]]):
    """The rankings of each question by all retrievers, made when they are asked for."""

    runs: tuple[StoredRankings, ...]
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> list[Ranking]: ...
    @overload
    def __getitem__(self, index: slice) -> Joined: ...
    def __getitem__(self, index: int | slice) -> list[Ranking] | Joined:
        if isinstance(index, slice):
            return Joined(self.runs, self.rows[index])
        return [run[self.rows[index]] for run in self.runs]


def rank_pool(pool: Pool, *, encoder: Encoder | None, depth: int, file: Path) -> StoredRankings:
    """The first `depth` candidates of every question by BM25, or by `encoder`; read from `file` where it holds them."""
    recipe = json.dumps(
        {
            "pool": pool.fingerprint,
            "questions": len(pool.questions),
            "retriever": f"bm25({pool.language},k1=0.9,b=0.4)" if encoder is None else encoder.signature,
            "depth": depth,
        },
        sort_keys=True,
    )
    if (stored := _read(file, recipe)) is not None:
        logger.info("%s: rankings as stored", file)
        return stored
    made = _stored(_bm25(pool, depth) if encoder is None else _dense(pool, encoder, depth), depth, len(pool.questions))
    write_whole(
        file,
        lambda handle: np.savez(handle, recipe=np.array(recipe), positions=made.positions, scores=made.scores),
    )
    return made


def _bm25(pool: Pool, depth: int) -> Iterable[Ranking]:
    from tqdm import tqdm

    index = BM25(list(pool.candidates), language=pool.language)
    questions = tqdm(pool.questions, desc=f"bm25 over {pool.name}", disable=len(pool.questions) < 2000)
    return (index.search(question.text, k=depth) for question in questions)


def _dense(pool: Pool, encoder: Encoder, depth: int) -> Iterable[Ranking]:
    queries = encoder.encode([question.text for question in pool.questions], query=True)
    vectors = encoder.encode(pool.candidates)
    return search_vectors(queries, vectors, np.arange(len(vectors)), k=depth, progress=len(pool.questions) >= 2000)


def _stored(rankings: Iterable[Ranking], depth: int, questions: int) -> StoredRankings:
    positions, scores = np.full((questions, depth), -1, dtype=np.int32), np.zeros((questions, depth))
    for row, ranking in enumerate(rankings):
        positions[row, : len(ranking)] = [position for position, _ in ranking]
        scores[row, : len(ranking)] = [score for _, score in ranking]
    return StoredRankings(positions, scores)


def _read(file: Path, recipe: str) -> StoredRankings | None:
    """The stored rankings of the same recipe; None where there are none, or a file that is not one of ours."""
    try:
        with np.load(file, allow_pickle=False) as held:
            if str(held["recipe"]) != recipe:
                return None
            return StoredRankings(held["positions"], held["scores"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        logger.warning("%s: not readable (%s); made again", file, error)
        return None
