"""Postings of the queries' terms, gathered in one pass over a corpus and kept in blocks on disk."""

from __future__ import annotations

import zipfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.files import write_whole
from qilin_tasks.retrieval.corpus import Batch, Corpus
from qilin_tasks.retrieval.term_scan import Occurrences, Scanner, scanner

BLOCK = 65_536
"""Documents in a block, at most: positions within it are kept in two bytes."""
BATCH = 4_096
WORKERS = 2


@dataclass(frozen=True)
class Block:
    """Postings of `BLOCK` documents by term: term t has `documents[starts[t]:starts[t + 1]]`, ascending."""

    ids: NDArray[Any]
    lengths: NDArray[np.int32]
    starts: NDArray[np.int64]
    documents: NDArray[np.uint16]
    frequencies: NDArray[np.uint16]

    @classmethod
    def read(cls, path: Path) -> Block:
        """A block that `write` made; ValueError, OSError or BadZipFile where the file is damaged."""
        with np.load(path, allow_pickle=False) as stored:
            return cls(*(stored[name] for name in ("ids", "lengths", "starts", "documents", "frequencies")))

    def write(self, path: Path) -> None:
        """Writes the block, whole or not at all."""
        write_whole(path, lambda file: np.savez(file, **vars(self)))


def gather(batches: Iterator[Batch], *, scan: Scanner, term_count: int) -> Block:
    """One block from at most BLOCK documents."""
    kind = np.uint32 if term_count <= 2**16 else np.uint64
    ids, lengths, keys = [], [], []
    first = 0
    for batch, found in _scanned(batches, scan):
        key = found.terms.astype(kind)
        key <<= kind(16)
        key += (found.texts + first).astype(kind)
        keys.append(key)
        ids.append(batch.ids)
        lengths.append(found.lengths)
        first += len(batch.texts)
    key = np.concatenate(keys)
    key.sort()
    is_first = np.ones(len(key), dtype=np.bool_)
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    frequencies = np.diff(np.append(begins, len(key)))
    key = key[begins]
    bounds = np.arange(term_count + 1, dtype=np.uint64) << np.uint64(16)
    return Block(
        ids=np.concatenate(ids),
        lengths=np.concatenate(lengths).astype(np.int32),
        # The last bound may be beyond the key's type.
        starts=np.append(np.searchsorted(key, bounds[:-1].astype(kind)), len(key)),
        documents=key.astype(np.uint16),
        frequencies=np.minimum(frequencies, 65_535).astype(np.uint16),
    )


def _scanned(batches: Iterator[Batch], scan: Scanner) -> Iterator[tuple[Batch, Occurrences]]:
    """Each batch with what was found in it, in order; two are scanned at a time (NumPy and Arrow release the GIL)."""
    waiting: deque[tuple[Batch, Future[Occurrences]]] = deque()
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        for batch in batches:
            waiting.append((batch, pool.submit(scan.scan, batch.texts)))
            if len(waiting) > WORKERS:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def gather_corpus(corpus: Corpus, *, terms: Sequence[str], language: str, folder: Path, progress: bool) -> list[Path]:
    """The blocks of the whole corpus as files in `folder`; those that are there already are not made again."""
    from tqdm import tqdm

    paths = [folder / f"block-{number:05d}.npz" for number in range(-(-corpus.count // BLOCK))]
    done = next((number for number, path in enumerate(paths) if not _is_whole(path)), len(paths))
    if done == len(paths):
        return paths
    scan = scanner(language, terms)
    stream = corpus.batches(BATCH, start=done * BLOCK)
    with tqdm(
        total=corpus.count, initial=done * BLOCK, unit=" notes", unit_scale=True, desc="BM25", disable=not progress
    ) as bar:
        for path in paths[done:]:
            block = gather(_take(stream, BLOCK // BATCH), scan=scan, term_count=len(terms))
            block.write(path)
            bar.update(len(block.ids))
    return paths


def _take(stream: Iterator[Batch], number: int) -> Iterator[Batch]:
    for _, batch in zip(range(number), stream, strict=False):
        yield batch


def _is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return "frequencies.npy" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
