"""Columns of a record batch as plain Python values: ids are ints, runs are tuples, impressions are dicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.sources import values
from qilin_tasks.sources.schema import ACTIONS, SCHEMA, Column
from qilin_tasks.sources.values import UnreadableValueError

Row = dict[str, Any]


def detail(value: Any) -> dict[str, Any]:
    """One impression: note_idx int; actions int (null is 0); position int or None; other numbers, None for NaN."""
    if not isinstance(value, Mapping):
        raise UnreadableValueError(f"an impression must be a struct, not {value!r:.60}")
    for name in ("note_idx", "click"):
        if name not in value:
            raise UnreadableValueError(f"an impression lacks {name!r}: {dict(value)!r:.80}")
    plain: dict[str, Any] = {}
    for name, item in value.items():
        if name == "note_idx":
            plain[name] = values.as_int(item)
        elif name in ACTIONS:
            plain[name] = values.as_number(item) or 0
        else:
            plain[name] = values.as_number(item)
    return plain


def pair(value: Any) -> tuple[int, float]:
    """One entry of a first-stage run, `[note_idx, score]`."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UnreadableValueError(f"a run entry must be [note_idx, score], not {value!r:.60}")
    score = values.as_number(value[1])
    if score is None:
        raise UnreadableValueError(f"the score of note {value[0]!r} is {value[1]!r}")
    return values.as_int(value[0]), float(score)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnreadableValueError(f"text is expected, not {value!r:.60}")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value and not value.lstrip().startswith(("[", "(")):
        return (value,)  # some exports keep only the cover
    return tuple(str(item) for item in values.as_list(value))


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "any": lambda value: value,
    "id": values.as_int,
    "number": values.as_number,
    "text": _text,
    "texts": _strings,
    "ids": lambda value: [values.as_int(item) for item in values.as_list(value)],
    # A citation that is null names no note: -1, as the release writes it elsewhere.
    "cited": lambda value: [-1 if _is_null(item) else values.as_int(item) for item in values.as_list(value)],
    "pairs": lambda value: [pair(item) for item in values.as_list(value)],
    "details": lambda value: [detail(item) for item in values.as_list(value)],
}


def fast_pairs(array: Any) -> list[list[tuple[int, float]]] | None:
    """Lists of [note_idx, score] through NumPy; None where the slow, error-naming way must look at them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return None
    inner = array.flatten()
    if not (pa.types.is_list(inner.type) or pa.types.is_large_list(inner.type)) or inner.null_count:
        return None
    if len(inner) and not pc.all(pc.equal(pc.list_value_length(inner), 2)).as_py():
        return None
    flat = inner.flatten()
    if flat.null_count or not pa.types.is_floating(flat.type):
        return None
    numbers = flat.to_numpy(zero_copy_only=False).reshape(-1, 2)
    if not np.isfinite(numbers).all() or (numbers[:, 0] != np.floor(numbers[:, 0])).any():
        return None
    entries = list(zip(numbers[:, 0].astype(np.int64).tolist(), numbers[:, 1].tolist(), strict=True))
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths).tolist()
    return [entries[start:end] for start, end in pairwise([0, *ends])]


def python_values(array: Any, *, name: str, config: str, first_row: int) -> list[Any]:
    """`to_pylist`, with a DataError where the bytes of a text column are not UTF-8."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError as error:
        raise DataError(
            f"{config} rows {first_row} to {first_row + len(array) - 1}, column {name}: text that is not UTF-8 "
            f"({error.reason}). Export the config again with UTF-8 text."
        ) from None


def column_values(array: Any, column: Column, *, name: str, config: str, first_row: int) -> list[Any]:
    """A column's values in plain types; a value that can't be read raises a DataError naming row and column."""
    if column.kind == "pairs":
        fast = fast_pairs(array)
        if fast is not None:
            return fast
    convert = CONVERTERS[column.kind]
    plain = []
    for offset, value in enumerate(python_values(array, name=name, config=config, first_row=first_row)):
        try:
            plain.append(convert(value))
        except UnreadableValueError as problem:
            raise DataError(
                f"{config} row {first_row + offset}, column {name}: {problem}. "
                "Correct the row, or export the config again (parquet keeps the types)."
            ) from None
    return plain


def batch_rows(batch: Any, *, config: str, first_row: int) -> list[Row]:
    """A record batch as dicts, each with its row number in the config under `row`."""
    schema = SCHEMA.get(config, {})
    names = batch.schema.names
    columns = [
        column_values(
            batch.column(position), schema.get(name, Column("any")), name=name, config=config, first_row=first_row
        )
        for position, name in enumerate(names)
    ]
    rows: list[Row] = []
    for offset in range(batch.num_rows):
        row: Row = {"row": first_row + offset}
        for name, items in zip(names, columns, strict=True):
            row[name] = items[offset]
        rows.append(row)
    return rows


def note_ids(value: Any) -> list[int]:
    """The note ids in a canonical value of kind ids, pairs or details."""
    if isinstance(value, int):
        return [value]
    if not value:
        return []
    if isinstance(value[0], tuple):
        return [item[0] for item in value]
    if isinstance(value[0], Mapping):
        return [item["note_idx"] for item in value]
    return list(value)


def check_note_ids(
    rows: Iterable[Row], columns: Sequence[str], *, config: str, note_count: int, shown: int = 5
) -> None:
    """Raise a DataError that counts and names the note ids outside 0..note_count-1, with their rows and columns."""
    bad: list[str] = []
    count = 0
    for row in rows:
        for name in columns:
            ids = note_ids(row.get(name))
            if not ids or (min(ids) >= 0 and max(ids) < note_count):
                continue
            for note_idx in ids:
                if not 0 <= note_idx < note_count:
                    count += 1
                    if len(bad) < shown:
                        bad.append(f"{note_idx} ({config} row {row['row']}, {name})")
    if count:
        more = f" and {count - len(bad)} more" if count > len(bad) else ""
        raise DataError(
            f"note ids outside 0..{note_count - 1}: {', '.join(bad)}{more}. "
            "The notes table and the requests are from different releases, or a file of notes is missing."
        )
