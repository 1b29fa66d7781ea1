"""Postings of the queries' terms, gathered in one pass over a corpus and kept in blocks on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.files import write_whole
from qilin_tasks.retrieval.corpus import Batch, Corpus
from qilin_tasks.retrieval.term_scan import Scanner, scanner
from qilin_tasks.retrieval.workers import Workers, neighbours

BLOCK = 65_536
"""Documents in a block, at most: positions within it are kept in two bytes."""
BATCH = 4_096


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
        return cls(*_arrays(path, "ids", "lengths", "starts", "documents", "frequencies"))

    @staticmethod
    def summary(path: Path) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]:
        """ids, lengths and starts of a block, without reading its postings."""
        ids, lengths, starts = _arrays(path, "ids", "lengths", "starts")
        return ids, lengths, starts

    def write(self, path: Path) -> None:
        """Writes the block, whole or not at all."""
        write_whole(path, lambda file: np.savez(file, **vars(self)))


def _arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    with np.load(path, allow_pickle=False) as stored:
        return [stored[name] for name in names]


def gather(batches: Iterator[Batch], *, scan: Scanner, term_count: int) -> Block:
    """One block from at most BLOCK documents."""
    kind = np.uint32 if term_count <= 2**16 else np.uint64
    ids, lengths, keys = [], [], []
    first = 0
    for batch in batches:
        found = scan.scan(batch.texts)
        key = found.terms.astype(kind)
        key <<= kind(16)
        key += (found.texts + first).astype(kind)
        keys.append(key)
        ids.append(batch.ids)
        lengths.append(found.lengths)
        first += len(batch.texts)
    key = np.concatenate(keys)
    keys.clear()
    key.sort()
    is_first = np.ones(len(key), dtype=np.bool_)
    np.not_equal(key[1:], key[:-1], out=is_first[1:])
    # Positions take most of the memory of a block in the making: no wider than they need to be.
    place = np.uint32 if len(key) < 2**32 else np.uint64
    begins = np.flatnonzero(is_first).astype(place)
    frequencies = np.diff(begins, append=place(len(key)))
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


def gather_corpus(
    corpus: Corpus, *, terms: Sequence[str], language: str, folder: Path, workers: Workers, progress: bool
) -> list[Path]:
    """The blocks of the whole corpus as files in `folder`; those that are there already are not made again."""
    from tqdm import tqdm

    count = corpus.count
    paths = [_path(folder, number) for number in range(-(-count // BLOCK))]
    missing = [number for number, path in enumerate(paths) if not _is_whole(path)]
    for number in missing:
        paths[number].unlink(missing_ok=True)
    jobs = workers.share(missing)
    bar = tqdm(total=count, unit=" notes", unit_scale=True, desc="BM25", disable=not progress)

    def show() -> None:
        left = sum(not paths[number].exists() for number in missing)
        bar.update(max(0, count - left * BLOCK - bar.n))

    with bar:
        show()
        if workers.number == 1 or len(jobs) < 2:
            scan = scanner(language, terms)
            for numbers in neighbours(missing, longest=len(paths)):
                for _ in _fill(corpus, scan, len(terms), numbers, folder=folder, block=BLOCK, batch=BATCH):
                    show()
        else:
            arguments = ((corpus, language, tuple(terms), numbers, folder, BLOCK, BATCH) for numbers in jobs)
            for _ in workers.run(_fill_all, arguments, tick=show):
                show()
    return paths


def _fill(
    corpus: Corpus, scan: Scanner, term_count: int, numbers: Sequence[int], *, folder: Path, block: int, batch: int
) -> Iterator[None]:
    """Writes blocks that follow each other, and stops after each."""
    stream = corpus.batches(batch, start=numbers[0] * block)
    for number in numbers:
        gather(_take(stream, block // batch), scan=scan, term_count=term_count).write(_path(folder, number))
        yield


def _fill_all(
    corpus: Corpus, language: str, terms: tuple[str, ...], numbers: Sequence[int], folder: Path, block: int, batch: int
) -> None:
    """As `_fill`, in a process that is given all it needs."""
    for _ in _fill(
        corpus, _held_scanner(language, terms), len(terms), numbers, folder=folder, block=block, batch=batch
    ):
        pass


#: Its tables take a second to make, so a process keeps them from one job to the next.
_held_scanner = lru_cache(maxsize=1)(scanner)


def _path(folder: Path, number: int) -> Path:
    return folder / f"block-{number:05d}.npz"


def _take(stream: Iterator[Batch], number: int) -> Iterator[Batch]:
    for _, batch in zip(range(number), stream, strict=False):
        yield batch


def _is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return "frequencies.npy" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
