"""Nearest vectors by dot product: exact in blocks, or approximate with FAISS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, DependencyError, SettingError
from qilin_tasks.retrieval.topk import TopK

BLOCK = 8_192


def search_vectors(
    queries: NDArray[np.float32], vectors: NDArray[Any], ids: NDArray[Any], *, k: int, progress: bool = False
) -> list[list[tuple[Any, float]]]:
    """The `k` vectors of the greatest dot product for each query, best first, equal products by id as text.

    `queries` is float32 (queries, dimension), `vectors` any float (documents, dimension), memory-mapped or not; blocks
    of BLOCK documents are compared in float32; a vector of NaN is never found. DataError for dimensions that differ.
    """
    from tqdm import tqdm

    if k < 1:
        raise SettingError(f"top-k {k}: choose a number of documents from 1")
    if queries.ndim != 2 or vectors.ndim != 2 or queries.shape[1] != vectors.shape[1]:
        raise DataError(f"queries of shape {queries.shape} don't fit vectors of shape {vectors.shape}")
    best = TopK(len(queries), k=k, least=-np.inf)
    limits = np.full((len(queries), 1), -np.inf, dtype=np.float32)
    starts = range(0, len(vectors), BLOCK)
    for start in tqdm(starts, desc="searching", unit=" blocks", disable=not progress):
        block = np.asarray(vectors[start : start + BLOCK], dtype=np.float32)
        scores = queries @ block.T
        rows, columns = np.nonzero(scores >= limits)
        bounds = np.searchsorted(rows, np.arange(len(queries) + 1))
        for query in np.flatnonzero(np.diff(bounds)).tolist():
            chosen = columns[bounds[query] : bounds[query + 1]]
            best.add(query, scores[query, chosen], ids[start + chosen])
            limits[query, 0] = best.threshold(query)
    return best.rankings()


def search_faiss(
    queries: NDArray[np.float32], vectors: NDArray[Any], ids: NDArray[Any], *, k: int, probes: int = 32
) -> list[list[tuple[Any, float]]]:
    """As `search_vectors`, approximately: FAISS's inverted lists (4 sqrt(n)) over float16, `probes` lists a query."""
    try:
        import faiss
    except ImportError as error:
        raise DependencyError("approximate search needs FAISS: pip install 'qilin-tasks[faiss]'") from error
    whole = np.concatenate(
        [
            np.flatnonzero(~np.isnan(vectors[start : start + BLOCK, 0])) + start
            for start in range(0, len(vectors), BLOCK)
        ]
    )
    if not len(whole):
        return [[] for _ in queries]
    lists = max(1, min(int(4 * len(whole) ** 0.5), len(whole) // 39))
    index = faiss.index_factory(vectors.shape[1], f"IVF{lists},SQfp16", faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(0).choice(whole, size=min(len(whole), 64 * lists), replace=False)
    index.train(np.asarray(vectors[np.sort(sample)], dtype=np.float32))
    for start in range(0, len(whole), BLOCK):
        index.add(np.asarray(vectors[whole[start : start + BLOCK]], dtype=np.float32))
    scores, positions = index.search(queries, k, params=faiss.SearchParametersIVF(nprobe=min(probes, lists)))
    return [
        [
            (ids[whole[position]].item(), float(score))
            for position, score in zip(row, values, strict=True)
            if position >= 0
        ]
        for row, values in zip(positions, scores, strict=True)
    ]
