"""Writes small data sets in the published layout, for tests that need rows of their own making."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PAIRS = pa.list_(pa.list_(pa.float64()))
DQA_SCHEMA = pa.schema(
    {
        "search_idx": pa.int64(),
        "session_idx": pa.int64(),
        "user_idx": pa.int64(),
        "query": pa.string(),
        "query_from_type": pa.int64(),
        "recent_clicked_note_idxs": pa.list_(pa.int64()),
        "dqa_output": pa.string(),
        "ref_note_idx_list": pa.list_(pa.int64()),
        "is_like_clk": pa.float64(),
        "is_onebox_trace_clk": pa.float64(),
        "is_content_clk": pa.float64(),
        "is_experience_clk": pa.float64(),
        "bm25_results": PAIRS,
        "dpr_results": PAIRS,
    }
)
NOTES_SCHEMA = pa.schema(
    {
        "note_idx": pa.int64(),
        "note_title": pa.string(),
        "note_content": pa.string(),
        "note_type": pa.int64(),
        "image_path": pa.list_(pa.string()),
    }
)


def dqa_row(index: int, **values: Any) -> dict[str, Any]:
    """A complete `dqa` row: what is not given is null, but for the ids and the actions."""
    row = dict.fromkeys(DQA_SCHEMA.names)
    row.update(search_idx=1000 + index, session_idx=index, user_idx=index, query_from_type=0)
    row.update(is_like_clk=0.0, is_onebox_trace_clk=0.0, is_content_clk=0.0, is_experience_clk=-1.0)
    return row | values


def write_config(folder: Path, config: str, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> Path:
    path = folder / config / "train-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path, row_group_size=100)
    return path


def write_dqa(
    folder: Path,
    rows: Sequence[dict[str, Any]],
    notes: Sequence[tuple[str | None, str | None]],
    drop: Sequence[str] = (),
) -> Path:
    """A folder with the configs `dqa` (without the columns in `drop`) and `notes` (title, content)."""
    schema = pa.schema([field for field in DQA_SCHEMA if field.name not in drop])
    write_config(folder, "dqa", [{k: v for k, v in row.items() if k not in drop} for row in rows], schema)
    write_config(
        folder,
        "notes",
        [
            {"note_idx": i, "note_title": t, "note_content": c, "note_type": 1, "image_path": []}
            for i, (t, c) in enumerate(notes)
        ],
        NOTES_SCHEMA,
    )
    return folder


def prepared(
    folder: Path, retriever: str, rankings: Mapping[int, Sequence[tuple[int, float]]], *, name: str | None = None
) -> str:
    """The path of a run over the folder's `dqa` as `prepare` writes it."""
    from qilin_tasks.retrieval.run_file import write_contexts
    from qilin_tasks.sources.qilin import open_qilin

    source = open_qilin(str(folder))
    recipe = {
        "retriever": retriever,
        "config": "dqa",
        "corpus_fingerprint": source.fingerprint("notes"),
        "config_fingerprint": source.fingerprint("dqa"),
    }
    path = folder / f"{name or retriever}.parquet"
    write_contexts(path, rankings, recipe=recipe)
    return str(path)


def real_notes(shared: Path) -> list[tuple[str, str]]:
    """Title and content of the 798 real notes, in file order."""
    with (shared / "data" / "qilin" / "notes.798.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    title = next(name for name in rows[0] if "title" in name)
    content = next(name for name in rows[0] if "content" in name)
    return [(row[title], row[content]) for row in rows]


def write_real_notes(folder: Path, shared: Path, *, questions: int = 40) -> Path:
    """The real notes, renumbered, with questions of our own making: a note's title, answered by its own first lines.

    BM25's list is computed over the real notes; the bi-encoder's list is BM25 over contents, a different ranking.
    """
    from qilin_tasks.retrieval.bm25 import BM25

    notes = real_notes(shared)
    both = BM25([f"{title} {content}" for title, content in notes], language="zh")
    contents = BM25([content for _, content in notes], language="zh")
    step = len(notes) // questions
    rows = []
    for index, note in enumerate(range(0, step * questions, step)):
        title, content = notes[note]
        rows.append(
            dqa_row(
                index,
                query=title.strip() or content[:20],
                dqa_output=" ".join(content.split())[:220] or title,
                ref_note_idx_list=[note, (note + 1) % len(notes)],
                bm25_results=[[float(i), score] for i, score in both.search(title or content[:20], k=100)],
                dpr_results=[[float(i), score] for i, score in contents.search(title or content[:20], k=100)],
                is_like_clk=float(index % 2),
            )
        )
    return write_dqa(folder, rows, notes)
