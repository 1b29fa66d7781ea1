"""Writes small `search_test` and `recommendation_test` data sets in the published layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.dqa_folder import NOTES_SCHEMA, write_config


def _details(stamp: str) -> pa.DataType:
    numbers = ("click", "like", "collect", "comment", "share", "page_time", stamp)
    fields = [("note_idx", pa.float64()), ("position", pa.float64()), *((name, pa.float64()) for name in numbers)]
    return pa.list_(pa.struct(fields))


SEARCH_SCHEMA = pa.schema(
    {
        "search_idx": pa.int64(),
        "session_idx": pa.int64(),
        "user_idx": pa.int64(),
        "query": pa.string(),
        "query_from_type": pa.int64(),
        "recent_clicked_note_idxs": pa.list_(pa.int64()),
        "search_result_details_with_idx": _details("search_timestamp"),
        "bm25_results": pa.list_(pa.list_(pa.float64())),
        "dpr_results": pa.list_(pa.list_(pa.float64())),
        "search_results": pa.list_(pa.int64()),
    }
)
RECOMMENDATION_SCHEMA = pa.schema(
    {
        "request_idx": pa.int64(),
        "session_idx": pa.int64(),
        "user_idx": pa.int64(),
        "query": pa.string(),
        "recent_clicked_note_idxs": pa.list_(pa.int64()),
        "rec_result_details_with_idx": _details("request_timestamp"),
        "rec_results": pa.list_(pa.int64()),
    }
)


def impressions(notes: Sequence[int], clicked: Sequence[int]) -> list[dict[str, float]]:
    """An impression list in this order."""
    return [
        {"note_idx": float(note), "position": float(place), "click": float(note in clicked), "like": 0.0}
        for place, note in enumerate(notes, start=1)
    ]


def search_row(index: int, notes: Sequence[int], clicked: Sequence[int], **values: Any) -> dict[str, Any]:
    row = dict.fromkeys(SEARCH_SCHEMA.names)
    row.update(search_idx=5000 + 7 * index, query=f"搜索词{index}", search_results=list(notes))
    row["search_result_details_with_idx"] = impressions(notes, clicked)
    return row | values


def recommendation_row(index: int, notes: Sequence[int], clicked: Sequence[int], **values: Any) -> dict[str, Any]:
    row = dict.fromkeys(RECOMMENDATION_SCHEMA.names)
    row.update(request_idx=9000 + 3 * index, query=f"兴趣{index}", rec_results=list(notes))
    row["rec_result_details_with_idx"] = impressions(notes, clicked)
    return row | values


def write_ranking(
    folder: Path,
    *,
    notes: int | Sequence[dict[str, Any]],
    search: Sequence[dict[str, Any]] | None = None,
    recommendation: Sequence[dict[str, Any]] | None = None,
) -> Path:
    """`notes`: how many short ones to write, or the rows themselves."""
    if isinstance(notes, int):
        notes = [
            {
                "note_idx": i,
                "note_title": f"标题{i}",
                "note_content": f"内容{i}",
                "note_type": 1,
                "image_path": [f"{i}.jpg"],
            }
            for i in range(notes)
        ]
    write_config(folder, "notes", notes, NOTES_SCHEMA)
    if search is not None:
        write_config(folder, "search_test", search, SEARCH_SCHEMA)
    if recommendation is not None:
        write_config(folder, "recommendation_test", recommendation, RECOMMENDATION_SCHEMA)
    return folder
