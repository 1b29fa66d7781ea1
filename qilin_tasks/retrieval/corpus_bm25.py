"""BM25 over a corpus that doesn't fit in memory: only the postings of the queries at hand, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.retrieval.bm25 import check_parameters
from qilin_tasks.retrieval.bm25_weights import encode_lengths, inverse_document_frequency, inverse_norms
from qilin_tasks.retrieval.corpus import Corpus, check_distinct
from qilin_tasks.retrieval.postings import Block, gather_corpus
from qilin_tasks.retrieval.topk import TopK
from qilin_tasks.retrieval.workers import Workers
from qilin_tasks.text.analyzers import analyzer

Ranking = list[tuple[Any, float]]
DENSE_FROM = 32
"""A term in more than one document of so many is kept as a full array: adding that is quicker than scattering."""


def search_corpus(
    queries: Sequence[str],
    corpus: Corpus,
    *,
    language: str,
    k: int,
    folder: Path,
    k1: float = 0.9,
    b: float = 0.4,
    workers: int = 1,
    progress: bool = False,
) -> list[Ranking]:
    """The `k` best (document id, score) for each query, best first, equal scores by id as text.

    One pass over the corpus writes blocks of postings into `folder`; a second call with the same queries and corpus
    finds them there. The scores are those of `BM25`, the same to the last bit for any number of `workers` (processes;
    a script that asks for several needs `if __name__ == "__main__"`). A query without terms finds nothing. Raises
    DataError for ids that occur twice, SettingError for parameters out of range.
    """
    check_parameters(k1=k1, b=b)
    analyze = analyzer(language)
    counts = [Counter(analyze(query)) for query in queries]
    terms = sorted(set().union(*counts)) if counts else []
    numbers = {term: number for number, term in enumerate(terms)}
    wanted = [sorted((numbers[term], count) for term, count in query.items()) for query in counts]
    with Workers(workers) as pool:
        paths = gather_corpus(corpus, terms=terms, language=language, folder=folder, workers=pool, progress=progress)
        return rank_blocks(wanted, paths, term_count=len(terms), k=k, k1=k1, b=b, workers=pool, progress=progress)


def rank_blocks(
    queries: Sequence[Sequence[tuple[int, int]]],
    paths: Sequence[Path],
    *,
    term_count: int,
    k: int,
    k1: float,
    b: float,
    workers: Workers,
    progress: bool,
) -> list[Ranking]:
    """Ranks documents for queries of (term number, count in the query); memory is that of one block a worker."""
    from tqdm import tqdm

    frequencies = np.zeros(term_count, dtype=np.int64)
    documents, total = 0, 0
    ids: list[NDArray[Any]] = []
    for path in paths:
        block_ids, lengths, starts = Block.summary(path)
        frequencies += np.diff(starts)
        documents += int(np.count_nonzero(lengths))
        total += int(lengths.sum(dtype=np.int64))
        ids.append(block_ids)
    if ids:
        check_distinct(np.concatenate(ids))
    idf = np.array(
        [inverse_document_frequency(frequency, documents) for frequency in frequencies.tolist()], dtype=np.float32
    )
    norms = inverse_norms(total / max(documents, 1), k1=k1, b=b)
    best = TopK(len(queries), k=k)
    jobs = workers.share(range(len(paths)))
    with tqdm(total=len(paths), desc="ranking", unit=" blocks", disable=not progress) as bar:
        if workers.number == 1 or len(jobs) < 2:
            for path in paths:
                _rank_block(path, idf, norms, queries, best)
                bar.update()
            return best.rankings()
        # Each job starts from the scores that those before it have reached.
        arguments = (
            ([paths[number] for number in numbers], idf, norms, queries, k, best.thresholds()) for numbers in jobs
        )
        for found, ranked in workers.run(_rank_blocks, arguments):
            best.merge(found)
            bar.update(ranked)
    return best.rankings()


def _rank_blocks(
    paths: Sequence[Path],
    idf: NDArray[np.float32],
    norms: NDArray[np.float32],
    queries: Sequence[Sequence[tuple[int, int]]],
    k: int,
    least: NDArray[np.float64],
) -> tuple[TopK, int]:
    """The best documents of some blocks that reach each query's `least`, and the number of blocks."""
    best = TopK(len(queries), k=k, least=least)
    for path in paths:
        _rank_block(path, idf, norms, queries, best)
    return best, len(paths)


class _Weights:
    """The postings of one block with the score that each adds to its document."""

    def __init__(self, block: Block, *, idf: NDArray[np.float32], norms: NDArray[np.float32]) -> None:
        self._size = len(block.ids)
        # NumPy indexes with its own integer type several times as fast as with the two bytes that are stored.
        self._documents = block.documents.astype(np.intp)
        self._idf = idf
        self._starts = block.starts.tolist()
        inverse = norms[encode_lengths(block.lengths)]
        self._divisors = np.float32(1) + block.frequencies.astype(np.float32) * inverse[self._documents]
        self._weights = np.repeat(idf, np.diff(block.starts))
        self._weights -= self._weights / self._divisors
        self._dense: dict[int, NDArray[np.float32]] = {}
        self._greatest = np.zeros(len(idf), dtype=np.float32)
        held = np.flatnonzero(np.diff(block.starts))
        if len(held):
            self._greatest[held] = np.maximum.reduceat(self._weights, block.starts[held])

    def present(self, query: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The query's terms that any document of the block holds."""
        return [(term, count) for term, count in query if self._starts[term] < self._starts[term + 1]]

    def bound(self, term: int, count: int) -> float:
        """No document of the block gets more from this term (a little above, for rounding)."""
        return float(self._greatest[term]) * count * (1 + 1e-5)

    def of(self, term: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Documents (ascending) and weights of a term that the query holds `count` times."""
        rows = slice(self._starts[term], self._starts[term + 1])
        if count == 1:
            return self._documents[rows], self._weights[rows]
        weight = np.float32(count) * self._idf[term]
        return self._documents[rows], weight - weight / self._divisors[rows]

    def add(self, term: int, count: int, totals: NDArray[np.float32]) -> None:
        """Adds a term's weights to the totals of all documents of the block."""
        if self._is_frequent(term, count):
            totals += self._dense_weights(term)
        else:
            documents, values = self.of(term, count)
            totals[documents] += values

    def at(self, term: int, count: int, candidates: NDArray[np.int64]) -> NDArray[np.float32]:
        """A term's weight for each of the candidates, 0 where it doesn't occur."""
        if self._is_frequent(term, count):
            return self._dense_weights(term)[candidates]
        documents, values = self.of(term, count)
        slots = np.minimum(np.searchsorted(documents, candidates), len(documents) - 1)
        return np.where(documents[slots] == candidates, values[slots], np.float32(0))

    def _is_frequent(self, term: int, count: int) -> bool:
        return count == 1 and (self._starts[term + 1] - self._starts[term]) * DENSE_FROM > self._size

    def _dense_weights(self, term: int) -> NDArray[np.float32]:
        if term not in self._dense:
            dense = np.zeros(self._size, dtype=np.float32)
            documents, values = self.of(term, 1)
            dense[documents] = values
            self._dense[term] = dense
        return self._dense[term]


def _rank_block(
    path: Path,
    idf: NDArray[np.float32],
    norms: NDArray[np.float32],
    queries: Sequence[Sequence[tuple[int, int]]],
    best: TopK,
) -> None:
    """Adds the block's documents to `best`, without looking at postings that can't lift one into it (MaxScore)."""
    block = Block.read(path)
    weights, ids = _Weights(block, idf=idf, norms=norms), block.ids
    totals = np.zeros(len(ids), dtype=np.float32)
    for number, query in enumerate(queries):
        terms = weights.present(query)
        if not terms:
            continue
        threshold = best.threshold(number)
        by_bound = sorted(((weights.bound(*term), term) for term in terms), reverse=True)
        missing = sum(bound for bound, _ in by_bound)
        added = 0
        while added < len(by_bound) and missing >= threshold:
            bound, term = by_bound[added]
            weights.add(*term, totals)
            missing -= bound
            added += 1
        # The sums so far are rough (single precision, any order): they only choose what is added up exactly below.
        candidates = np.flatnonzero(totals >= max(_least(threshold, missing), 1e-30))
        rough = totals[candidates]
        totals.fill(0)
        candidates, rough = _prune(candidates, rough, threshold, missing, k=best.k)
        for bound, term in by_bound[added:]:
            rough += weights.at(*term, candidates)
            missing -= bound
            candidates, rough = _prune(candidates, rough, threshold, missing, k=best.k)
        if len(candidates):
            # Lucene's arithmetic: float weights, a double sum in the order of terms, a float.
            exact = np.zeros(len(candidates), dtype=np.float64)
            for term in terms:
                exact += weights.at(*term, candidates)
            scores = exact.astype(np.float32)
            enough = scores >= threshold
            if enough.any():
                best.add(number, scores[enough], ids[candidates[enough]])


def _least(reached: float, missing: float) -> float:
    """What a document must have already to reach `reached` with the most that is missing (a little below)."""
    return (reached - max(missing, 0.0)) * (1 - 1e-5)


def _prune(
    candidates: NDArray[np.int64], rough: NDArray[np.float32], threshold: float, missing: float, *, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The candidates that can still be among the best: at least `k` documents reach the k-th rough score."""
    if len(candidates) > k:
        threshold = max(threshold, float(np.partition(rough, len(rough) - k)[len(rough) - k]))
    keep = rough >= _least(threshold, missing)
    return (candidates, rough) if keep.all() else (candidates[keep], rough[keep])
