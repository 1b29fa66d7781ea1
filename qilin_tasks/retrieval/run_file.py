"""Runs with their recipe: a parquet file (query row, note id, rank, score) that the tasks' setting `contexts` reads."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole

FORMAT = 1
_KEY = b"qilin_tasks.recipe"
_COLUMNS = ("row", "note_idx", "rank", "score")

Rankings = Mapping[int, Sequence[tuple[int, float]]]


def write_contexts(path: str | os.PathLike[str], rankings: Rankings, *, recipe: Mapping[str, Any]) -> None:
    """Writes rankings (query row -> [(note id, score)], best first) with their recipe, whole or not at all.

    Rows that found nothing are named in the recipe, so that they can be told from rows nobody asked for. The same
    rankings and recipe give the same bytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = [
        (row, note_idx, rank, score)
        for row in sorted(rankings)
        for rank, (note_idx, score) in enumerate(rankings[row], start=1)
    ]
    columns = list(zip(*flat, strict=True)) or [(), (), (), ()]
    types = (pa.int64(), pa.int64(), pa.int32(), pa.float64())
    full = {
        "format": FORMAT,
        **recipe,
        "rows": len(rankings),
        "empty_rows": [row for row in rankings if not rankings[row]],
    }
    table = pa.table(
        [pa.array(column, type=kind) for column, kind in zip(columns, types, strict=True)], names=list(_COLUMNS)
    ).replace_schema_metadata({_KEY: json.dumps(full, ensure_ascii=False, sort_keys=True)})
    write_whole(Path(path), lambda file: pq.write_table(table, file, compression="zstd"))


def read_recipe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How a run came about: retriever, parameters, analyzer or model, fingerprints. DataError for another file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except FileNotFoundError:
        raise DataError(f"{path}: no such run; `qilin-tasks prepare` writes it") from None
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: not a parquet run of `qilin-tasks prepare` ({error})") from error
    if _KEY not in metadata:
        raise DataError(f"{path}: a parquet file without a recipe; make the run with `qilin-tasks prepare`")
    recipe = cast(dict[str, Any], json.loads(metadata[_KEY]))
    if recipe.get("format") != FORMAT:
        raise DataError(f"{path}: run format {recipe.get('format')!r}, this version reads {FORMAT}; make the run again")
    return recipe


def signed(path: str | os.PathLike[str]) -> str:
    """A run's part of a signature, `bm25@<digest>`: its retriever and what tells its file from any other."""
    return f"{read_recipe(path).get('retriever')}@{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"


def read_contexts(
    path: str | os.PathLike[str], *, config: str, fingerprint: str, config_fingerprint: str | None = None
) -> dict[int, list[tuple[int, float]]]:
    """Rankings (query row -> [(note id, score)], best first) for every row the run was made for.

    `fingerprint` is that of the `notes`, `config_fingerprint` (where given) that of the rows. Raises DataError for a
    run of another config, of other notes or rows, or one that is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    recipe = read_recipe(path)
    if recipe["config"] != config:
        raise DataError(
            f"{path}: made for the config {recipe['config']!r}, asked for {config!r}; {_again(config, path)}"
        )
    checks = (("notes", "corpus_fingerprint", fingerprint), ("rows", "config_fingerprint", config_fingerprint))
    for what, key, expected in checks:
        if expected is not None and recipe[key] != expected:
            raise DataError(
                f"{path}: made from other {what} (fingerprint {recipe[key]}) than the data at hand ({expected}); "
                f"{_again(config, path)}"
            )
    try:
        table = pq.read_table(path, columns=list(_COLUMNS))
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: damaged ({error}); {_again(config, path)}") from error
    rankings: dict[int, list[tuple[int, float]]] = {row: [] for row in recipe["empty_rows"]}
    row, note_idx, _, score = (column.to_pylist() for column in table.columns)
    for one_row, one_note, one_score in zip(row, note_idx, score, strict=True):
        rankings.setdefault(one_row, []).append((one_note, one_score))
    if len(rankings) != recipe["rows"]:
        raise DataError(f"{path}: holds {len(rankings)} of {recipe['rows']} rows; {_again(config, path)}")
    return dict(sorted(rankings.items()))


def _again(config: str, path: object) -> str:
    return f"make it again: qilin-tasks prepare --config {config} --retriever … --out {path}"
