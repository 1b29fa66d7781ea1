"""The Arrow types of the published parquet files, for those who write them (the sample, tests, the generator)."""

from __future__ import annotations

from typing import Any

from qilin_tasks.sources.schema import ACTIONS, COUNTERS


def arrow_schemas() -> dict[str, Any]:
    """config -> pyarrow.Schema with every column of the published layout."""
    import pyarrow as pa

    ids = pa.list_(pa.int64())
    run = pa.list_(pa.list_(pa.float64()))

    def details(timestamp: str) -> Any:
        names = ("note_idx", "position", *ACTIONS, "page_time", timestamp)
        return pa.list_(pa.struct([(name, pa.float64()) for name in names]))

    def schema(**columns: Any) -> Any:
        return pa.schema(list(columns.items()))

    request = {"session_idx": pa.int64(), "user_idx": pa.int64(), "query": pa.string(), "recent_clicked_note_idxs": ids}
    search = {
        "search_idx": pa.int64(),
        **request,
        "query_from_type": pa.int64(),
        "search_result_details_with_idx": details("search_timestamp"),
    }
    recommendation = {"request_idx": pa.int64(), **request, "rec_result_details_with_idx": details("request_timestamp")}
    flags = ("is_like_clk", "is_onebox_trace_clk", "is_content_clk", "is_experience_clk")
    return {
        "dqa": schema(
            **search,
            dqa_output=pa.string(),
            ref_note_idx_list=pa.list_(pa.float64()),  # floats that hold ids, as some releases have them
            **dict.fromkeys(flags, pa.float64()),
            bm25_results=run,
            dpr_results=run,
        ),
        "notes": schema(
            note_idx=pa.int64(),
            note_title=pa.string(),
            note_content=pa.string(),
            note_type=pa.int64(),
            image_path=pa.list_(pa.string()),
            image_num=pa.int64(),
            video_duration=pa.float64(),
            video_height=pa.float64(),
            video_width=pa.float64(),
            content_length=pa.int64(),
            commercial_flag=pa.int64(),
            taxonomy1_id=pa.string(),
            taxonomy2_id=pa.string(),
            taxonomy3_id=pa.string(),
            **dict.fromkeys(COUNTERS, pa.float64()),
        ),
        "search_train": schema(**search, dpr_results=run),
        "search_test": schema(**search, bm25_results=run, dpr_results=run, search_results=ids),
        "recommendation_train": schema(**recommendation),
        "recommendation_test": schema(**recommendation, rec_results=ids),
        "user_feat": schema(
            user_idx=pa.int64(),
            gender=pa.string(),
            platform=pa.string(),
            age=pa.string(),
            fans_num=pa.float64(),
            follows_num=pa.float64(),
            location=pa.string(),
            **{f"dense_feat{number}": pa.float64() for number in range(1, 41)},
        ),
    }
