"""Qilin from the hub, from a local folder, or from the embedded sample, behind one interface."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.sources.csv_export import CsvTable
from qilin_tasks.sources.files import config_files
from qilin_tasks.sources.hub import HubSnapshot
from qilin_tasks.sources.notes import Note, iter_batches, read_notes
from qilin_tasks.sources.parquet import ParquetTable
from qilin_tasks.sources.rows import Row, batch_rows, check_note_ids
from qilin_tasks.sources.schema import SCHEMA, faults, raise_faults, required_columns

__all__ = ["DEFAULT", "Note", "QilinSource", "open_qilin"]

DEFAULT = "THUIR/Qilin"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def open_qilin(spec: str | None = None, *, revision: str | None = None) -> QilinSource:
    """Qilin as `sample`, a local folder, or a hub id (default: env QILIN_DATA, else THUIR/Qilin); nothing is read yet.

    `revision` (default: env QILIN_REVISION) is for the hub only. Raises SettingError for a spec that is none of them.

    >>> source = open_qilin("sample")
    >>> sorted(source.rows("dqa", ["query"], limit=1)[0])
    ['query', 'row']
    """
    spec = spec or os.environ.get("QILIN_DATA") or DEFAULT
    revision = revision or os.environ.get("QILIN_REVISION") or None
    if spec == "sample":
        from qilin_tasks.sources.sample import sample_folder

        return QilinSource("sample", folder=sample_folder())
    path = Path(spec).expanduser()
    if path.is_dir():
        return QilinSource(str(path.resolve()), folder=path)
    if _HUB_ID.fullmatch(spec) and not path.exists():
        return QilinSource(spec, hub=HubSnapshot(spec, revision=revision))
    raise SettingError(
        f"QILIN_DATA {spec!r}: choose from sample, an existing folder of parquet or CSV files "
        f"in the published layout, or a hub id such as {DEFAULT}"
    )


class QilinSource:
    """The configs of one copy of Qilin, each opened (and, from the hub, fetched) when first asked for."""

    def __init__(self, name: str, *, folder: Path | None = None, hub: HubSnapshot | None = None) -> None:
        self.name = name
        self._folder = folder
        self._hub = hub
        self._tables: dict[str, ParquetTable | CsvTable] = {}

    def __repr__(self) -> str:
        return f"QilinSource({self.name!r})"

    @property
    def revision(self) -> str | None:
        """The commit sha of a hub copy; None for a folder and the sample."""
        return self._hub.resolve() if self._hub else None

    def _table(self, config: str) -> ParquetTable | CsvTable:
        if config not in SCHEMA:
            raise unknown("config", config, SCHEMA)
        if config not in self._tables:
            root = self._hub.folder(config) if self._hub else self._folder
            if root is None:
                raise DataError(f"{self.name}: neither a folder nor a hub id is set")
            files = config_files(root, config)
            if not files:
                there = [name for name in SCHEMA if name != config and config_files(root, name)]
                raise DataError(
                    f"{root}: no files of config {config!r} (looked for {config}/*.parquet, data/{config}/*.parquet, "
                    f"{config}.parquet, and the same with .csv). Configs there: {', '.join(there) or 'none'}. "
                    f"Copy {config}/ of {DEFAULT} into it, or set QILIN_DATA=sample."
                )
            kind = ParquetTable if files[0].suffix == ".parquet" else CsvTable
            self._tables[config] = kind(config, files)
        return self._tables[config]

    def has(self, config: str) -> bool:
        """Whether the copy holds the config; a hub that can't be asked, or a damaged file, is an error, not a no."""
        if config not in SCHEMA:
            raise unknown("config", config, SCHEMA)
        root = self._hub.fetch(config) if self._hub else self._folder
        if root is None or not config_files(root, config):
            return False
        self._table(config)
        return True

    def columns(self, config: str) -> tuple[str, ...]:
        """The names of the config's columns, as stored."""
        return tuple(self._table(config).types)

    def row_count(self, config: str) -> int:
        """The number of rows of a config."""
        return self._table(config).num_rows

    def note_count(self) -> int:
        """The number of notes; valid ids are 0 .. note_count() - 1."""
        return self.row_count("notes")

    def check(self, required: Mapping[str, Iterable[str] | None]) -> None:
        """Raise one DataError naming every missing config and every missing or mistyped column at once.

        `required` maps a config to the columns that must be there (None: those that every release has).
        """
        lines: list[str] = []
        for config, columns in required.items():
            if config not in SCHEMA:
                raise unknown("config", config, SCHEMA)
            try:
                table = self._table(config)
            except DataError as error:
                lines.append(f"{config}: {error}")
                continue
            names = required_columns(config) if columns is None else tuple(columns)
            lines += faults(config, names, table.types, from_text=table.from_text)
        raise_faults(lines, where=self.name)

    def rows(self, config: str, columns: Sequence[str], *, limit: int | None = None) -> list[Row]:
        """Rows (all, or the first `limit`) as dicts of the columns in canonical types, plus `row`, the row number.

        ids int; `*_idxs`, `*_list`, `*_results` of ids list[int]; runs list[(int, float)]; impressions list[dict].
        """
        rows: list[Row] = []
        for batch in self.iter_rows(config, columns):
            rows += batch
            if limit is not None and len(rows) >= limit:
                return rows[:limit]
        return rows

    def iter_rows(self, config: str, columns: Sequence[str], *, batch_size: int = 1024) -> Iterator[list[Row]]:
        """The rows of `rows`, some at a time."""
        self.check({config: columns})
        for first_row, batch in self._table(config).batches(columns, batch_size=batch_size):
            yield batch_rows(batch, config=config, first_row=first_row)

    def check_note_ids(self, config: str, rows: Iterable[Row], columns: Sequence[str]) -> None:
        """Raise DataError where these columns of the rows hold note ids that are negative or beyond the notes table."""
        check_note_ids(rows, columns, config=config, note_count=self.note_count())

    def notes(self, ids: Collection[int], *, images: bool = False) -> dict[int, Note]:
        """The notes with these ids, ascending; reads three columns (four with images) of the row groups needed.

        Raises DataError for ids that are not there.
        """
        columns = ["note_idx", "note_title", "note_content", *(["image_path"] if images else [])]
        self.check({"notes": columns})
        return read_notes(self._table("notes"), ids, images=images, where=self.name)

    def iter_notes(self, columns: Sequence[str], batch_size: int = 16384, *, start: int = 0) -> Iterator[Any]:
        """The corpus as pyarrow record batches in note order, from row `start` on; note_idx int64, texts string."""
        self.check({"notes": columns})
        return iter_batches(self._table("notes"), columns, batch_size=batch_size, start=start)

    def fingerprint(self, config: str) -> str:
        """16 hex digits of a sha256 over the config's files (big ones: size, footer and sampled blocks), in order.

        The same files in another folder, or under other names, have the same fingerprint.
        """
        return self._table(config).fingerprint()
