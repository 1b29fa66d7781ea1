"""BM25 over a corpus that doesn't fit in memory: only the postings of the queries at hand, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..text.analyzers import analyzer
from .bm25 import check_parameters
from .bm25_weights import encode_lengths, inverse_document_frequency, inverse_norms
from .corpus import Corpus, check_distinct
from .postings import Block, gather_corpus
from .topk import TopK

Ranking = list[tuple[Any, float]]


def search_corpus(
    queries: Sequence[str],
    corpus: Corpus,
    *,
    language: str,
    k: int,
    folder: Path,
    k1: float = 0.9,
    b: float = 0.4,
    progress: bool = False,
) -> list[Ranking]:
    """The `k` best (document id, score) for each query, best first, equal scores by id as text.

    One pass over the corpus writes blocks of postings into `folder`; a second call with the same queries and corpus
    finds them there. The scores are those of `BM25`. A query without terms finds nothing. Raises DataError for ids
    that occur twice, SettingError for parameters out of range.
    """
    check_parameters(k1=k1, b=b)
    analyze = analyzer(language)
    counts = [Counter(analyze(query)) for query in queries]
    terms = sorted(set().union(*counts)) if counts else []
    paths = gather_corpus(corpus, terms=terms, language=language, folder=folder, progress=progress)
    numbers = {term: number for number, term in enumerate(terms)}
    wanted = [sorted((numbers[term], count) for term, count in query.items()) for query in counts]
    return rank_blocks(wanted, paths, term_count=len(terms), k=k, k1=k1, b=b, progress=progress)


def rank_blocks(
    queries: Sequence[Sequence[tuple[int, int]]],
    paths: Sequence[Path],
    *,
    term_count: int,
    k: int,
    k1: float,
    b: float,
    progress: bool,
) -> list[Ranking]:
    """Ranks documents for queries of (term number, count in the query); memory is that of one block."""
    from tqdm import tqdm

    frequencies = np.zeros(term_count, dtype=np.int64)
    documents, total = 0, 0
    ids: list[NDArray[Any]] = []
    for path in paths:
        block = Block.read(path)
        frequencies += np.diff(block.starts)
        documents += int(np.count_nonzero(block.lengths))
        total += int(block.lengths.sum(dtype=np.int64))
        ids.append(block.ids)
    if ids:
        check_distinct(np.concatenate(ids))
    idf = np.array(
        [inverse_document_frequency(frequency, documents) for frequency in frequencies.tolist()], dtype=np.float32
    )
    norms = inverse_norms(total / max(documents, 1), k1=k1, b=b)
    best = TopK(len(queries), k=k)
    for path in tqdm(paths, desc="ranking", unit=" blocks", disable=not progress):
        _rank_block(Block.read(path), queries, idf=idf, norms=norms, best=best)
    return best.rankings()


def _rank_block(
    block: Block,
    queries: Sequence[Sequence[tuple[int, int]]],
    *,
    idf: NDArray[np.float32],
    norms: NDArray[np.float32],
    best: TopK,
) -> None:
    one = np.float32(1)
    inverse = norms[encode_lengths(block.lengths)]
    divisors = one + block.frequencies.astype(np.float32) * inverse[block.documents]
    weights = np.repeat(idf, np.diff(block.starts))
    weights -= weights / divisors
    starts = block.starts.tolist()
    totals = np.zeros(len(block.ids), dtype=np.float64)
    for number, query in enumerate(queries):
        touched = False
        for term, count in query:
            rows = slice(starts[term], starts[term + 1])
            if rows.start == rows.stop:
                continue
            touched = True
            if count == 1:
                totals[block.documents[rows]] += weights[rows]
            else:
                weight = np.float32(count) * idf[term]
                totals[block.documents[rows]] += weight - weight / divisors[rows]
        if touched:
            scores = totals.astype(np.float32)
            candidates = np.flatnonzero(scores >= best.threshold(number))
            if len(candidates):
                best.add(number, scores[candidates], block.ids[candidates])
            totals.fill(0)
