"""A config exported as CSV: every column is text, nested ones as JSON or Python literals."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError


class CsvTable:
    """The CSV files of one config as one table of text columns, read as a stream."""

    from_text = True

    def __init__(self, config: str, files: Sequence[Path]) -> None:
        import pyarrow as pa

        self.config = config
        self.files = tuple(files)
        self._num_rows: int | None = None
        headers = [self._header(path) for path in self.files]
        for path, header in zip(self.files, headers, strict=True):
            if set(header) != set(headers[0]):
                raise DataError(f"{path}: other columns than {self.files[0].name}: export the config again.")
        self.types: dict[str, Any] = {name: pa.string() for name in headers[0]}

    @staticmethod
    def _header(path: Path) -> list[str]:
        try:
            with path.open(newline="", encoding="utf-8-sig") as stream:
                header = next(csv.reader(stream), None)
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path}: not a UTF-8 CSV file ({error}): export it again with UTF-8.") from error
        if not header:
            raise DataError(f"{path}: empty, where a header line is expected: export it again.")
        return header

    def _records(self, path: Path) -> Iterator[list[str]]:
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        header = self._header(path)
        number = -1
        try:
            with path.open(newline="", encoding="utf-8-sig") as stream:
                reader = csv.reader(stream, strict=True)
                next(reader)
                for number, record in enumerate(reader):
                    if len(record) != len(header):
                        raise DataError(
                            f"{path}: row {number} has {len(record)} fields, the header {len(header)}: "
                            "an unquoted comma or line break; export it again with quoting."
                        )
                    yield record
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path}: after row {number}: {error}. The file is truncated or not UTF-8 CSV.") from error

    @property
    def num_rows(self) -> int:
        """Rows in all files; the first call reads them through once."""
        if self._num_rows is None:
            self._num_rows = sum(1 for path in self.files for _ in self._records(path))
        return self._num_rows

    def batches(
        self, columns: Sequence[str], *, batch_size: int = 8192, start: int = 0, keep: object = None
    ) -> Iterator[tuple[int, Any]]:
        """(row number of its first row, record batch of strings) pairs; an empty field is null."""
        import pyarrow as pa

        def batch(rows: list[list[str | None]]) -> Any:
            arrays = [pa.array(list(items), pa.string()) for items in zip(*rows, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, names=list(columns))

        row, kept = 0, []
        for path in self.files:
            header = self._header(path)
            positions = [header.index(name) for name in columns]
            for record in self._records(path):
                if row >= start:
                    kept.append([record[position] or None for position in positions])
                row += 1
                if len(kept) == batch_size:
                    yield row - len(kept), batch(kept)
                    kept = []
        if kept:
            yield row - len(kept), batch(kept)

    def fingerprint(self) -> str:
        """sha256 over the files' whole content, in order."""
        digest = hashlib.sha256()
        for path in self.files:
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()[:16]
