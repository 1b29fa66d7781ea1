"""Postings of the queries' terms, gathered in one pass over a corpus and kept in blocks on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .corpus import Batch, Corpus
from .term_scan import Scanner, scanner
from .workspace import write_whole

BLOCK = 65_536
"""Documents in a block: positions within it fit in two bytes."""
_BATCH = 4_096


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
    ids, lengths, keys = [], [], []
    first = 0
    for batch in batches:
        found = scan.scan(batch.texts)
        keys.append(found.terms * BLOCK + (found.texts + first))
        ids.append(batch.ids)
        lengths.append(found.lengths)
        first += len(batch.texts)
    key = np.concatenate(keys)
    key.sort()
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    frequencies = np.diff(begins, append=len(key))
    terms, documents = np.divmod(key[begins], BLOCK)
    return Block(
        ids=np.concatenate(ids),
        lengths=np.concatenate(lengths).astype(np.int32),
        starts=np.searchsorted(terms, np.arange(term_count + 1)),
        documents=documents.astype(np.uint16),
        frequencies=np.minimum(frequencies, 65_535).astype(np.uint16),
    )


def gather_corpus(corpus: Corpus, *, terms: Sequence[str], language: str, folder: Path, progress: bool) -> list[Path]:
    """The blocks of the whole corpus as files in `folder`; those that are there already are not made again."""
    from tqdm import tqdm

    paths = [folder / f"block-{number:05d}.npz" for number in range(-(-corpus.count // BLOCK))]
    done = next((number for number, path in enumerate(paths) if not _is_whole(path)), len(paths))
    if done == len(paths):
        return paths
    scan = scanner(language, terms)
    stream = corpus.batches(_BATCH, start=done * BLOCK)
    with tqdm(
        total=corpus.count, initial=done * BLOCK, unit=" notes", unit_scale=True, desc="BM25", disable=not progress
    ) as bar:
        for path in paths[done:]:
            block = gather(_take(stream, BLOCK // _BATCH), scan=scan, term_count=len(terms))
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
