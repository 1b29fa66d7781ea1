"""Rankings of numbered candidates to ranks of the answer sentence and its document, for many questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.metrics.hits import Floats

# Questions handled together: bounds the memory.
_CHUNK = 10_000


class Judged(NamedTuple):
    """One question's candidates: 1-based ids of the answer sentences, each candidate's document, the gold documents."""

    relevant: Sequence[int]
    owners: Sequence[int]
    documents: Sequence[int]


@dataclass(frozen=True)
class CandidateRanks:
    """Ranks from 1, float64 of shape (questions,): of the first answer sentence and of the first gold document.

    Infinity stands for what was not retrieved; `found` tells whether an answer sentence is a candidate at all.
    """

    sentence: Floats
    document: Floats
    found: NDArray[np.bool_]


def candidate_ranks(rankings: Sequence[Sequence[int]], judged: Sequence[Judged]) -> dict[str, CandidateRanks]:
    """Ranks by suffix: "" (strict: an id that is not ranked is not retrieved), "_repaired" (the rest in shown order).

    A ranking holds distinct ids within 1..n, best first. A document's rank is its place among the documents in order
    of their best candidate. All arrays are (questions, candidates); 100,000 rankings of 20 take about a second.
    """
    chunks = [
        _rank_chunk(rankings[start : start + _CHUNK], judged[start : start + _CHUNK])
        for start in range(0, max(len(rankings), 1), _CHUNK)
    ]
    rank, document_rank, position, ranked, found = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return {
        "": CandidateRanks(
            np.where(rank <= ranked, rank, np.inf), np.where(position <= ranked, document_rank, np.inf), found
        ),
        "_repaired": CandidateRanks(rank, document_rank, found),
    }


def _rank_chunk(rankings: Sequence[Sequence[int]], judged: Sequence[Judged]) -> tuple[NDArray[Any], ...]:
    """Rank, document rank, place of the first candidate of a gold document, ids ranked, and whether one is relevant."""
    count = len(rankings)
    ranked = np.fromiter(map(len, rankings), dtype=np.int64, count=count)
    sizes = np.fromiter((len(item.owners) for item in judged), dtype=np.int64, count=count)
    width = int(sizes.max(initial=0))
    order = _orders(rankings, ranked, width)
    real = order < sizes[:, None]

    relevant = np.zeros((count, width), dtype=bool)
    hits = [item.relevant for item in judged]
    relevant[_rows(hits), _flat(hits) - 1] = True
    owners = np.full((count, width), -1, dtype=np.int64)
    owned = [item.owners for item in judged]
    owners[_rows(owned), _columns(sizes)] = _flat(owned)
    gold = np.zeros((count, width), dtype=bool)
    for nth in range(max((len(item.documents) for item in judged), default=0)):
        wanted = [item.documents[nth] if nth < len(item.documents) else -2 for item in judged]
        gold |= owners == np.array(wanted)[:, None]

    rank = _first(np.take_along_axis(relevant, order, axis=1) & real)
    ordered_owners = np.take_along_axis(owners, order, axis=1)
    place = _places(ordered_owners)
    position = _first(np.take_along_axis(gold, order, axis=1) & real)
    found = np.isfinite(position)
    at = np.where(found, position, 1).astype(np.int64) - 1
    document_rank = np.where(found, np.take_along_axis(place, at[:, None], axis=1)[:, 0], np.inf)
    return rank, document_rank, position, ranked, np.asarray(relevant.any(axis=1))


def _places(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many distinct documents each row shows up to each column."""
    by_column = np.ascontiguousarray(owners.T.astype(np.int32))
    new = np.ones(by_column.shape, dtype=bool)
    for column in range(1, len(by_column)):
        new[column] = ~(by_column[:column] == by_column[column]).any(axis=0)
    return np.asarray(np.cumsum(new, axis=0).T, dtype=np.int64)


def _orders(rankings: Sequence[Sequence[int]], ranked: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Candidate columns of each question in repaired order: the ranked ids, then the rest in shown order."""
    keys = np.tile(np.arange(width, 2 * width), (len(rankings), 1))
    keys[_rows(rankings), _flat(rankings) - 1] = _columns(ranked)
    return np.argsort(keys, axis=1, kind="stable")


def _flat(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(lists), dtype=np.int64)


def _rows(lists: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))


def _columns(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0..size-1 for each list, one after the other."""
    starts = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - np.repeat(starts, sizes)


def _first(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1-based column of the first True of each row, infinity without one."""
    if not mask.shape[1]:
        return np.full(len(mask), np.inf)
    return np.where(mask.any(axis=1), mask.argmax(axis=1) + 1.0, np.inf)
