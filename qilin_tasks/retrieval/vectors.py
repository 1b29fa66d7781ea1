"""Vectors of a corpus in a memory-mapped float16 file that is written in pieces and goes on where it stopped."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.retrieval.corpus import Corpus, check_distinct
from qilin_tasks.retrieval.encoders import Encoder
from qilin_tasks.text.tokens import is_blank

CHUNK = 8_192
"""Documents encoded and saved at a time; texts of one chunk are batched by length."""


@dataclass(frozen=True)
class VectorFile:
    """`vectors` is float16 of shape (documents, dimension), memory-mapped; `ids` has one id a document.

    A document without text has a vector of NaN: no search finds it.
    """

    ids: NDArray[Any]
    vectors: NDArray[np.float16]


def encode_corpus(corpus: Corpus, encoder: Encoder, folder: Path, *, progress: bool) -> VectorFile:
    """The vectors of all documents, encoded where `folder` lacks them yet.

    A chunk counts when its ids are saved, which happens after its vectors are on disk. Raises DataError where the
    folder holds vectors of another model or corpus.
    """
    from tqdm import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    _check_header(folder, corpus, encoder)
    count = corpus.count
    chunks = [folder / f"ids-{number:06d}.npy" for number in range(-(-count // CHUNK))]
    done = next((number for number, path in enumerate(chunks) if not path.is_file()), len(chunks))
    stored = _map(folder / "vectors.f16", (count, encoder.dimension))
    if done < len(chunks):
        with tqdm(
            total=count, initial=done * CHUNK, unit=" texts", unit_scale=True, desc="encoding", disable=not progress
        ) as bar:
            batches = corpus.batches(CHUNK, start=done * CHUNK)
            for number, (path, batch) in enumerate(zip(chunks[done:], batches, strict=False), start=done):
                texts = batch.texts.tolist()
                encoded = encoder.encode(texts)
                if not np.isfinite(encoded).all() or np.abs(encoded).max(initial=0) > np.finfo(np.float16).max:
                    raise DataError(
                        f"{encoder.signature}: vectors that float16 can't hold, near document {batch.ids[0]}"
                    )
                encoded[[is_blank(text) for text in texts]] = np.nan
                stored[number * CHUNK : number * CHUNK + len(encoded)] = encoded
                stored.flush()
                write_whole(path, lambda file, ids=batch.ids: np.save(file, ids))  # type: ignore[misc]
                bar.update(len(encoded))
    ids = np.concatenate([np.load(path, allow_pickle=False) for path in chunks])
    check_distinct(ids)
    return VectorFile(ids, stored)


def _map(path: Path, shape: tuple[int, int]) -> Any:
    """The memory map, created with its space reserved: a full disk shows here and not as a crash while writing."""
    import os

    size = shape[0] * shape[1] * 2
    if not path.exists() or path.stat().st_size != size:
        try:
            with path.open("wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise DataError(f"{path}: no space for {size / 2**20:.0f} MB of vectors ({error.strerror})") from error
            raise DataError(f"{path}: can't be written ({error})") from error
    return np.memmap(path, dtype=np.float16, mode="r+", shape=shape)


def _check_header(folder: Path, corpus: Corpus, encoder: Encoder) -> None:
    header = {
        "encoder": encoder.signature,
        "dimension": encoder.dimension,
        "corpus": corpus.fingerprint,
        "count": corpus.count,
        "dtype": "float16, NaN without text",
    }
    path = folder / "header.json"
    if not path.exists():
        if any(folder.glob("ids-*.npy")) or (folder / "vectors.f16").exists():
            raise DataError(f"{folder}: vectors without a header.json; delete the folder or choose another --vectors")
        write_whole(path, lambda file: file.write(json.dumps(header, sort_keys=True).encode()))
        return
    try:
        known = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); delete the folder or choose another --vectors") from error
    for name, value in header.items():
        if known.get(name) != value:
            raise DataError(
                f"{folder}: vectors of another {name} ({known.get(name)!r}) than asked for ({value!r}); choose another "
                "--vectors folder, or delete this one"
            )
