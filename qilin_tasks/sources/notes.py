"""Notes by id: only three or four columns, only the row groups that can hold the ids, batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qilin_tasks.errors import DataError
from qilin_tasks.sources.rows import column_values, python_values
from qilin_tasks.sources.schema import SCHEMA

if TYPE_CHECKING:
    from qilin_tasks.sources.csv_export import CsvTable
    from qilin_tasks.sources.parquet import ParquetTable


@dataclass(frozen=True, slots=True)
class Note:
    """A note as a prompt can show it; nulls are empty strings, `images` are relative paths, the cover first."""

    note_idx: int
    title: str
    content: str
    images: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Title, a space, content: what the official conversion indexes."""
        return f"{self.title} {self.content}"


def id_array(array: Any, *, first_row: int) -> Any:
    """The note_idx column as an int64 NumPy array, whatever it arrived as."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_integer(array.type) and not array.null_count:
        return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    plain = column_values(array, SCHEMA["notes"]["note_idx"], name="note_idx", config="notes", first_row=first_row)
    return np.array(plain, dtype=np.int64)


def text_array(array: Any) -> Any:
    """A title or content column as plain Arrow strings (nulls stay null)."""
    import pyarrow as pa

    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def iter_batches(
    table: ParquetTable | CsvTable, columns: Sequence[str], *, batch_size: int, start: int
) -> Iterator[Any]:
    """Record batches of the corpus in note order, note_idx as int64, titles and contents as string."""
    import pyarrow as pa

    for first_row, batch in table.batches(columns, batch_size=batch_size, start=start):
        arrays = []
        for name in columns:
            array = batch.column(name)
            if name == "note_idx":
                array = pa.array(id_array(array, first_row=first_row))
            elif SCHEMA["notes"].get(name) and SCHEMA["notes"][name].kind == "text":
                array = text_array(array)
            arrays.append(array)
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _group_filter(wanted: Any) -> Any:
    """Keep the row groups whose note_idx statistics overlap the sorted ids (all, where there are no statistics)."""
    import numpy as np

    def keep(shard: Any, group: int, first_row: int) -> bool:
        position = shard.schema_arrow.names.index("note_idx")
        metadata = shard.metadata.row_group(group)
        # Nested columns before it would shift the leaf index, so the column is found by its path.
        if position >= metadata.num_columns or metadata.column(position).path_in_schema != "note_idx":
            position = next(
                number for number in range(metadata.num_columns) if metadata.column(number).path_in_schema == "note_idx"
            )
        statistics = metadata.column(position).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        low = np.searchsorted(wanted, statistics.min, side="left")
        return bool(low < np.searchsorted(wanted, statistics.max, side="right"))

    return keep


def read_notes(table: ParquetTable | CsvTable, ids: Collection[int], *, images: bool, where: str) -> dict[int, Note]:
    """The notes with these ids, in ascending order of id, through one pass over the row groups that can hold them.

    Raises DataError for ids that are absent (some are named) and for a note_idx that occurs twice among them.
    """
    import numpy as np
    import pyarrow as pa

    wanted = np.unique(np.fromiter(ids, dtype=np.int64, count=len(ids)))
    columns = ["note_idx", "note_title", "note_content", *(["image_path"] if images else [])]
    found: dict[int, Note] = {}
    repeated: list[int] = []
    if len(wanted):
        for first_row, batch in table.batches(columns, batch_size=4096, keep=_group_filter(wanted)):
            numbers = id_array(batch.column(0), first_row=first_row)
            slot = np.searchsorted(wanted, numbers)
            hits = np.flatnonzero(wanted[np.minimum(slot, len(wanted) - 1)] == numbers)
            if not len(hits):
                continue
            chosen = batch.take(pa.array(hits))
            paths: list[Any] = [()] * len(hits)
            if images:
                paths = column_values(
                    chosen.column(3),
                    SCHEMA["notes"]["image_path"],
                    name="image_path",
                    config="notes",
                    first_row=first_row,
                )
            titles, contents = (
                python_values(text_array(chosen.column(n)), name=columns[n], config="notes", first_row=first_row)
                for n in (1, 2)
            )
            for note_idx, title, content, path in zip(numbers[hits].tolist(), titles, contents, paths, strict=True):
                if note_idx in found:
                    repeated.append(note_idx)
                found[note_idx] = Note(note_idx, title or "", content or "", path)
    if repeated:
        raise DataError(
            f"{where}: note_idx is not unique: {', '.join(map(str, sorted(set(repeated))[:5]))} occur more than once. "
            "Two copies of a shard lie in the notes folder, or the export is damaged."
        )
    if len(found) < len(wanted):
        missing = [note_idx for note_idx in wanted.tolist() if note_idx not in found]
        raise DataError(
            f"{where}: {len(missing)} of {len(wanted)} wanted notes are not in the notes table "
            f"({table.num_rows} rows): {', '.join(map(str, missing[:5]))}{'…' if len(missing) > 5 else ''}. "
            "The notes table and the requests are from different releases, or a file of notes is missing."
        )
    return {note_idx: found[note_idx] for note_idx in wanted.tolist()}
