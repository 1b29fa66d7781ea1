"""The published layout of Qilin as a table, and the check that names every departure from it at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from qilin_tasks.errors import DataError


class Column(NamedTuple):
    """What a column holds: a kind of KINDS, whether a release may lack it, and the fields a struct must have."""

    kind: str
    optional: bool = False
    fields: tuple[str, ...] = ()


ACTIONS = ("click", "like", "collect", "comment", "share")

_ID = Column("id")
_TEXT = Column("text")
_NUMBER = Column("number")
_IDS = Column("ids")
_COUNTER = Column("number", optional=True)
_RUN = Column("pairs", optional=True)
_DETAILS = Column("details", fields=("note_idx", "click"))

_REQUEST = {
    "session_idx": Column("id", optional=True),
    "user_idx": Column("id", optional=True),
    "query": _TEXT,
    "recent_clicked_note_idxs": _IDS,
}
_SEARCH = {
    **_REQUEST,
    "search_idx": _ID,
    "query_from_type": Column("any", optional=True),
    "search_result_details_with_idx": _DETAILS,
    "bm25_results": _RUN,
    "dpr_results": _RUN,
}
_RECOMMENDATION = {
    **_REQUEST,
    "request_idx": _ID,
    "rec_result_details_with_idx": _DETAILS,
}
COUNTERS = (
    "imp_num", "imp_rec_num", "imp_search_num", "click_num", "click_rec_num", "click_search_num",
    "like_num", "collect_num", "comment_num", "share_num", "screenshot_num", "hide_num",
    "rec_like_num", "rec_collect_num", "rec_comment_num", "rec_share_num", "rec_follow_num",
    "search_like_num", "search_collect_num", "search_comment_num", "search_share_num", "search_follow_num",
    "accum_like_num", "accum_collect_num", "accum_comment_num",
    "view_time", "rec_view_time", "search_view_time", "valid_view_times", "full_view_times",
)  # fmt: skip

SCHEMA: Mapping[str, Mapping[str, Column]] = {
    "dqa": {
        **_SEARCH,
        "search_idx": Column("id", optional=True),
        "dqa_output": _TEXT,
        "ref_note_idx_list": Column("cited"),
        "references": Column("texts", optional=True),
        "question_id": Column("any", optional=True),
        "is_like_clk": _COUNTER,
        "is_onebox_trace_clk": _COUNTER,
        "is_content_clk": _COUNTER,
        "is_experience_clk": _COUNTER,
    },
    "notes": {
        "note_idx": _ID,
        "note_title": _TEXT,
        "note_content": _TEXT,
        "note_type": _COUNTER,
        "image_path": Column("texts", optional=True),
        "image_num": _COUNTER,
        "video_duration": _COUNTER,
        "video_height": _COUNTER,
        "video_width": _COUNTER,
        "content_length": _COUNTER,
        "commercial_flag": _COUNTER,
        "taxonomy1_id": Column("any", optional=True),
        "taxonomy2_id": Column("any", optional=True),
        "taxonomy3_id": Column("any", optional=True),
        **dict.fromkeys(COUNTERS, _COUNTER),
    },
    "search_train": _SEARCH,
    "search_test": {**_SEARCH, "search_results": Column("ids", optional=True)},
    "recommendation_train": _RECOMMENDATION,
    "recommendation_test": {**_RECOMMENDATION, "rec_results": Column("ids", optional=True)},
    "user_feat": {
        "user_idx": _ID,
        "gender": Column("any"),
        "platform": Column("any"),
        "age": Column("any"),
        "fans_num": _NUMBER,
        "follows_num": _NUMBER,
        "location": Column("any"),
        **{f"dense_feat{number}": _NUMBER for number in range(1, 41)},
    },
}
#: By config, the column that lists what was shown.
DETAILS_COLUMNS: Mapping[str, str] = {
    config: name for config, columns in SCHEMA.items() for name, column in columns.items() if column is _DETAILS
}


def closest(name: str, choices: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the choice most like the name, or an empty string."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _value_type(dtype: Any) -> Any:
    import pyarrow.types as t

    return _value_type(dtype.value_type) if t.is_dictionary(dtype) else dtype


def _is_list(dtype: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_list(dtype) or t.is_large_list(dtype) or t.is_fixed_size_list(dtype))


def _is_text(dtype: Any, _: Column) -> bool:
    import pyarrow.types as t

    dtype = _value_type(dtype)
    return bool(t.is_string(dtype) or t.is_large_string(dtype) or t.is_string_view(dtype))


def _is_number(dtype: Any, _: Column) -> bool:
    import pyarrow.types as t

    return bool(t.is_integer(dtype) or t.is_floating(dtype) or t.is_boolean(dtype))


def _lists_of(inner: Callable[[Any, Column], bool]) -> Callable[[Any, Column], bool]:
    def accepts(dtype: Any, column: Column) -> bool:
        import pyarrow.types as t

        return _is_list(dtype) and (t.is_null(dtype.value_type) or inner(dtype.value_type, column))

    return accepts


def _has_fields(dtype: Any, column: Column) -> bool:
    import pyarrow.types as t

    return t.is_struct(dtype) and set(column.fields) <= {field.name for field in dtype}


# kind -> (words for the message, the Arrow types that hold it). Numbers may arrive as floats, and every nested
# kind as one JSON or Python-literal string, which is read (and checked) row by row.
KINDS: Mapping[str, tuple[str, Callable[[Any, Column], bool]]] = {
    "any": ("anything", lambda dtype, column: True),
    "id": ("integers (or floats that hold them)", _is_number),
    "number": ("numbers", _is_number),
    "text": ("text", _is_text),
    "texts": ("lists of text, or JSON text", _lists_of(_is_text)),
    "ids": ("lists of integers, or JSON text", _lists_of(_is_number)),
    "cited": ("lists of integers, or JSON text", _lists_of(_is_number)),
    "pairs": ("lists of [note_idx, score], or JSON text", _lists_of(_lists_of(_is_number))),
    "details": ("lists of structs, or JSON text", _lists_of(_has_fields)),
}
NESTED = frozenset({"texts", "ids", "cited", "pairs", "details"})


def accepts(column: Column, dtype: Any, *, from_text: bool = False) -> bool:
    """Whether an Arrow type can hold the column; with `from_text` (CSV) a string can hold every kind."""
    import pyarrow.types as t

    if t.is_null(dtype):  # what pandas writes for a column without any value
        return True
    if _is_text(dtype, column) and (from_text or column.kind in NESTED):
        return True
    return KINDS[column.kind][1](dtype, column)


def faults(config: str, required: Iterable[str], present: Mapping[str, Any], *, from_text: bool) -> list[str]:
    """One line for each required column that is missing or mistyped, in the order asked for."""
    lines = []
    schema = SCHEMA.get(config, {})
    for name in dict.fromkeys(required):
        column = schema.get(name, Column("any"))
        if name not in present:
            spare = [other for other in present if other not in schema]
            near = closest(name, spare) or closest(name, present)
            lines.append(f"{config}.{name}: missing{near}")
        elif not accepts(column, present[name], from_text=from_text):
            words = KINDS[column.kind][0]
            if column.fields:
                words += f" with the fields {', '.join(column.fields)}"
            lines.append(f"{config}.{name}: {present[name]}, where {words} are expected")
    return lines


def required_columns(config: str) -> tuple[str, ...]:
    """The columns that every release of a config has."""
    return tuple(name for name, column in SCHEMA[config].items() if not column.optional)


def raise_faults(lines: list[str], *, where: str) -> None:
    """Raise one DataError that holds all the lines; nothing when there are none."""
    if lines:
        listed = "\n".join(f"  - {line}" for line in lines)
        raise DataError(
            f"{where} does not have the published layout of THUIR/Qilin:\n{listed}\n"
            "Rename or convert these columns, or point QILIN_DATA at another copy (QILIN_DATA=sample always works)."
        )
