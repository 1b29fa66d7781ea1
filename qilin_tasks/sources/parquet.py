"""A config stored as parquet: footers first, then only the columns and row groups that are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError

WHOLE_FILE_BYTES = 32 * 1024 * 1024
_BLOCK = 64 * 1024
_BLOCKS = 32

# (shard, row group, first row of the group in the config) -> whether to read it
GroupFilter = Callable[[Any, int, int], bool]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into a DataError that names the file and the way out."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowCapacityError, OSError, EOFError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path}: cannot be read as parquet ({first_line}). The file is truncated or damaged: "
            "download or write it again (for a hub copy delete the file from the cache first)."
        ) from error


class ParquetTable:
    """The shards of one config as one table in file order; nothing but footers is read on opening."""

    from_text = False

    def __init__(self, config: str, files: Sequence[Path]) -> None:
        import pyarrow.parquet as pq

        self.config = config
        self.files = tuple(files)
        self.shards: list[Any] = []
        for path in self.files:
            with readable(path):
                self.shards.append(pq.ParquetFile(path, memory_map=False, pre_buffer=False))
        first = self.shards[0].schema_arrow
        self.types: dict[str, Any] = {field.name: field.type for field in first}
        for path, shard in zip(self.files, self.shards, strict=True):
            different = set(self.types) ^ set(shard.schema_arrow.names)
            if different:
                raise DataError(
                    f"{path}: other columns than {self.files[0].name} ({', '.join(sorted(different)[:5])}): "
                    "the shards are of different releases; download the config again."
                )

    def __reduce__(self) -> tuple[type[ParquetTable], tuple[str, tuple[Path, ...]]]:
        # Open files don't go to another process; there they are opened again.
        return type(self), (self.config, self.files)

    @property
    def num_rows(self) -> int:
        """Rows in all shards, from the footers."""
        return sum(shard.metadata.num_rows for shard in self.shards)

    def batches(
        self,
        columns: Sequence[str],
        *,
        batch_size: int = 8192,
        start: int = 0,
        keep: GroupFilter | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """(row number of its first row, record batch) pairs from row `start` on, in file order.

        Row groups that end before `start`, or that `keep` refuses, are never read.
        """
        first = 0
        for path, shard in zip(self.files, self.shards, strict=True):
            for at, groups in _runs(shard, first_row=first, start=start, keep=keep):
                with readable(path):
                    reader = shard.iter_batches(batch_size=batch_size, row_groups=groups, columns=list(columns))
                while True:
                    with readable(path):
                        batch = next(reader, None)
                    if batch is None:
                        break
                    size = batch.num_rows
                    if at + size > start:
                        skip = max(0, start - at)
                        yield at + skip, batch.slice(skip).select(list(columns))
                    at += size
            first += shard.metadata.num_rows

    def fingerprint(self) -> str:
        """sha256 over the shards: files up to 32 MiB whole; larger ones by size, footer and 32 blocks of 64 KiB.

        The footer holds schema, row counts, sizes, offsets and statistics of every column chunk. Names don't count.
        """
        digest = hashlib.sha256()
        for path in self.files:
            digest.update(file_digest(path))
        return digest.hexdigest()[:16]


def _runs(shard: Any, *, first_row: int, start: int, keep: GroupFilter | None) -> Iterator[tuple[int, list[int]]]:
    """(first row, row groups) for each run of neighbouring row groups to read: one reader each, not one a group."""
    run: list[int] = []
    at = run_row = first_row
    for group in range(shard.metadata.num_row_groups):
        rows = shard.metadata.row_group(group).num_rows
        if at + rows > start and (keep is None or keep(shard, group, at)):
            if not run:
                run_row = at
            run.append(group)
        elif run:
            yield run_row, run
            run = []
        at += rows
    if run:
        yield run_row, run


def file_digest(path: Path) -> bytes:
    """The sha256 of a file: of all of it up to 32 MiB, else of its size, its footer and evenly spaced blocks."""
    digest = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as stream:
        if size <= WHOLE_FILE_BYTES:
            digest.update(stream.read())
            return digest.digest()
        digest.update(str(size).encode())
        stream.seek(size - 8)
        footer = min(int.from_bytes(stream.read(4), "little") + 8, size)
        stream.seek(size - footer)
        digest.update(stream.read(footer))
        step = (size - footer) // _BLOCKS
        for number in range(_BLOCKS):
            stream.seek(number * step)
            digest.update(stream.read(_BLOCK))
    return digest.digest()
