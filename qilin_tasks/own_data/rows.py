"""Rows of a JSON lines, CSV or parquet file, each with the place that an error names."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qilin_tasks.errors import DataError, unknown


class Row(NamedTuple):
    """`values` by column, or the `fault` that keeps the row from being read; `as_text`: lists may be JSON text."""

    place: str
    values: Mapping[str, Any]
    fault: str = ""
    as_text: bool = False


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a .jsonl (or .json with an object a line), .csv or .parquet file, in order, without blank lines.

    Raises SettingError for another suffix, DataError for a file that can't be read at all.
    """
    if path.suffix not in READERS:
        raise unknown(f"{path}: suffix", path.suffix, READERS)
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a file that is there")
    try:
        yield from READERS[path.suffix](path)
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}); give a file that can") from error


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            place = f"{path.name}, line {number}"
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if line:
                    values = json.loads(line)
                    fault = "" if isinstance(values, dict) else "one JSON object a line is expected"
                    yield Row(place, {} if fault else values, fault)
            except UnicodeDecodeError as error:
                yield Row(place, {}, f"not UTF-8 ({error.reason})")
            except (ValueError, RecursionError) as error:
                yield Row(place, {}, f"not JSON ({error})")


def _csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    number = 1
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            if len(set(header)) < len(header):
                raise DataError(f"{path}: a column's name is there twice: {', '.join(header)}")
            number = reader.line_num + 1
            for cells in reader:
                place = f"{path.name}, line {number}"
                number = reader.line_num + 1
                if cells and len(cells) != len(header):
                    yield Row(place, {}, f"{len(cells)} cells under {len(header)} columns")
                elif cells:
                    yield Row(place, dict(zip(header, cells, strict=True)), as_text=True)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}, from line {number} on: not a CSV file in UTF-8 ({error})") from error


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=1024):
            for values in batch.to_pylist():
                number += 1
                yield Row(f"{path.name}, row {number}", values)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a parquet file of text and lists ({error})") from error


READERS = {".jsonl": _json_lines, ".json": _json_lines, ".csv": _csv, ".parquet": _parquet}
