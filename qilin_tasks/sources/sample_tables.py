"""The sample's readable YAML as Arrow tables with every column of the published layout."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.sources.layout import arrow_schemas
from qilin_tasks.sources.schema import ACTIONS, COUNTERS

USERS = 24
_START = 1_700_000_000
_FLAGS = {
    "like": "is_like_clk",
    "trace": "is_onebox_trace_clk",
    "content": "is_content_clk",
    "experience": "is_experience_clk",
}


def load_yaml(files: dict[str, bytes], name: str) -> Any:
    """One of the sample's YAML files."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(files[name].decode("utf-8"), Loader=loader)  # noqa: S506 (a safe loader either way)


def draw(*parts: object, below: int) -> int:
    """A number in 0..below-1 that depends on the parts alone: the same on every machine and Python."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") % below


def tables(files: dict[str, bytes]) -> dict[str, Any]:
    """config -> pyarrow.Table for all seven configs."""
    import pyarrow as pa

    notes = load_yaml(files, "notes.yaml")
    requests = load_yaml(files, "requests.yaml")
    dqa = load_yaml(files, "dqa.yaml")
    rankings = json.loads(files["rankings.json"]) if "rankings.json" in files else {}
    keys = {note["key"]: number for number, note in enumerate(notes)}
    if len(keys) != len(notes):
        raise DataError("notes.yaml: a note key occurs twice")
    rows: dict[str, list[dict[str, Any]]] = {
        "notes": [note_row(number, note) for number, note in enumerate(notes)],
        "dqa": [
            {
                **search_row(row, entry, keys, "dqa"),
                **answer_columns(entry, keys),
                **run_columns(rankings, "dqa", row, ("bm25_results", "dpr_results")),
            }
            for row, entry in enumerate(dqa)
        ],
        "search_test": [
            {
                **search_row(row, entry, keys, "search_test"),
                **run_columns(rankings, "search_test", row, ("bm25_results", "dpr_results")),
                "search_results": [number for number, _ in shown(entry, keys)],
            }
            for row, entry in enumerate(requests["search_test"])
        ],
        "search_train": [
            {
                **search_row(row, entry, keys, "search_train"),
                **run_columns(rankings, "search_train", row, ("dpr_results",)),
            }
            for row, entry in enumerate(requests["search_train"])
        ],
        "recommendation_train": [
            recommendation_row(row, entry, keys, notes, "recommendation_train")
            for row, entry in enumerate(requests["recommendation_train"])
        ],
        "recommendation_test": [
            {
                **recommendation_row(row, entry, keys, notes, "recommendation_test"),
                "rec_results": [number for number, _ in shown(entry, keys)],
            }
            for row, entry in enumerate(requests["recommendation_test"])
        ],
        "user_feat": [user_row(number) for number in range(USERS)],
    }
    return {config: pa.Table.from_pylist(rows[config], schema=schema) for config, schema in arrow_schemas().items()}


def shown(entry: dict[str, Any], keys: dict[str, int]) -> list[tuple[int, bool]]:
    """The exposed notes of a request as (note_idx, clicked), in order."""
    return [(keys[name.rstrip("!")], name.endswith("!")) for name in entry["shown"]]


def note_row(number: int, note: dict[str, Any]) -> dict[str, Any]:
    """One note; counters fall with the depth of the action, as they do in practice."""
    key, images = note["key"], note["images"]
    impressions = 500 + draw(key, "imp", below=20_000)
    counters = {
        name: float(impressions if name.startswith("imp") else draw(key, name, below=1 + impressions // 12))
        for name in COUNTERS
    }
    video = note.get("video")
    return {
        "note_idx": number,
        "note_title": note["title"],
        "note_content": note["content"],
        "note_type": 2 if video else 1,
        "image_path": [f"image/part_{number % 4}/{number}/{place}.jpg" for place in range(images)],
        "image_num": images,
        "video_duration": float(video) if video else None,
        "video_height": 1280.0 if video else None,
        "video_width": 720.0 if video else None,
        "content_length": len(note["content"] or ""),
        "commercial_flag": int(draw(key, "commercial", below=10) == 0),
        "taxonomy1_id": note["topic"],
        "taxonomy2_id": None,
        "taxonomy3_id": None,
        **counters,
    }


def impressions(
    exposed: Sequence[tuple[int, bool]], *, config: str, row: int, top: bool, timestamp: str
) -> list[dict[str, float]]:
    """The impression structs of one request: page_time is -1 or NaN where nobody opened the note."""
    details = []
    for place, (number, clicked) in enumerate(exposed):
        seed = (config, row, place)
        actions = dict.fromkeys(ACTIONS, 0.0)
        if clicked:
            actions = {name: float(draw(*seed, name, below=5) == 0) for name in ACTIONS} | {"click": 1.0}
        unopened = -1.0 if draw(*seed, "unopened", below=2) else float("nan")
        details.append(
            {
                "note_idx": float(number),
                "position": float(place if top else place + 1),
                **actions,
                "page_time": 3.0 + draw(*seed, "time", below=900) / 10 if clicked else unopened,
                timestamp: float(_START + 3600 * row + place),
            }
        )
    return details


def _request(row: int, config: str, keys: dict[str, int]) -> dict[str, Any]:
    number = draw(config, row, "recent", below=4)
    return {
        "session_idx": 10 * row + draw(config, row, "session", below=10),
        "user_idx": draw(config, row, "user", below=USERS),
        "recent_clicked_note_idxs": [draw(config, row, place, below=len(keys)) for place in range(number)],
    }


def search_row(row: int, entry: dict[str, Any], keys: dict[str, int], config: str) -> dict[str, Any]:
    """The columns that dqa, search_train and search_test share."""
    return {
        **_request(row, config, keys),
        "search_idx": 5000 + 7 * row,  # not the row number, as in the real data
        "query": entry["query"],
        "query_from_type": draw(config, row, "from", below=6),
        "search_result_details_with_idx": impressions(
            shown(entry, keys), config=config, row=row, top=entry.get("top", False), timestamp="search_timestamp"
        ),
    }


def recommendation_row(
    row: int, entry: dict[str, Any], keys: dict[str, int], notes: list[dict[str, Any]], config: str
) -> dict[str, Any]:
    """A recommendation request; its query is the titles of the recently clicked notes."""
    recent = [keys[name] for name in entry["recent"]]
    return {
        **_request(row, config, keys),
        "request_idx": 9000 + 3 * row,
        "recent_clicked_note_idxs": recent,
        "query": "".join(notes[number]["title"] or "" for number in recent),
        "rec_result_details_with_idx": impressions(
            shown(entry, keys), config=config, row=row, top=False, timestamp="request_timestamp"
        ),
    }


def answer_columns(entry: dict[str, Any], keys: dict[str, int]) -> dict[str, Any]:
    """The answer, its references, and the actions on it (null where the module did not trigger)."""
    engaged, refs = entry["engaged"], entry["refs"]
    return {
        "dqa_output": entry["answer"],
        "ref_note_idx_list": None if refs is None else [float(keys[name]) for name in refs],
        **{column: None if engaged is None else float(action in engaged) for action, column in _FLAGS.items()},
    }


def run_columns(rankings: dict[str, Any], config: str, row: int, columns: Sequence[str]) -> dict[str, Any]:
    """The frozen first-stage lists of one row, `[[note_idx, score], …]` as floats."""
    return {
        column: [[float(number), float(score)] for number, score in rankings[config][column][row]]
        if config in rankings
        else None
        for column in columns
    }


def user_row(number: int) -> dict[str, Any]:
    """One user, with the anonymous dense features drawn from the number."""
    return {
        "user_idx": number,
        "gender": ("female", "male", "unknown")[draw(number, "gender", below=3)],
        "platform": ("iOS", "Android")[draw(number, "platform", below=2)],
        "age": ("18-22", "23-27", "28-32", "33-37", "unknown")[draw(number, "age", below=5)],
        "fans_num": float(draw(number, "fans", below=2000)),
        "follows_num": float(draw(number, "follows", below=500)),
        "location": ("上海", "四川", "广东", "山东", "unknown")[draw(number, "location", below=5)],
        **{f"dense_feat{feature}": draw(number, feature, below=10**6) / 10**6 for feature in range(1, 41)},
    }
