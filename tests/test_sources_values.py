"""Values however they were exported: JSON, Python literals, floats as ids."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import DataError
from qilin_tasks.sources.rows import CONVERTERS, batch_rows, fast_pairs
from qilin_tasks.sources.values import UnreadableValueError, as_int, as_list, as_number, parse_literal

ROUND_TRIPS = [
    ("[1, 2]", [1, 2]),
    ("[1.0, 2.0]", [1.0, 2.0]),
    ("[[3, 0.5], [4, 0.25]]", [[3, 0.5], [4, 0.25]]),
    ("{'note_idx': 1.0, 'click': None, 'ok': True}", {"note_idx": 1.0, "click": None, "ok": True}),
    ('[{"note_idx": 1, "click": null}]', [{"note_idx": 1, "click": None}]),
    ("(1, 2)", (1, 2)),
    (" [1] ", [1]),
    ('["它说\\"好\\""]', ['它说"好"']),
]


@pytest.mark.parametrize(("text", "value"), ROUND_TRIPS)
def test_literals(text: str, value: Any) -> None:
    assert parse_literal(text) == value


@pytest.mark.parametrize("text", ["[nan, -inf, inf]", "[NaN, -Infinity, Infinity]"])
def test_numbers_that_are_none(text: str) -> None:
    first, low, high = parse_literal(text)
    assert math.isnan(first) and low == -math.inf and high == math.inf


@pytest.mark.parametrize(
    "text",
    ["[1 2]", "[1,", "__import__('os').getcwd()", "array([1, 2])", "[x for x in (1,)]", "[" * 5000, "nope"],
)
def test_anything_else_is_refused_and_never_run(text: str) -> None:
    with pytest.raises(UnreadableValueError, match="neither JSON nor a Python literal"):
        parse_literal(text)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(UnreadableValueError):
        parse_literal(text)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(plain)
@settings(max_examples=200, deadline=None)
def test_json_and_python_text_give_back_the_value(value: Any) -> None:
    assert parse_literal(json.dumps(value)) == value
    if not (isinstance(value, str) and value == ""):
        parsed = parse_literal(repr(value))
        assert parsed == value


@pytest.mark.parametrize(("value", "number"), [(3, 3), (3.0, 3), ("3", 3), ("3.0", 3), (-1.0, -1), ("1e3", 1000)])
def test_ids(value: Any, number: int) -> None:
    assert as_int(value) == number and isinstance(as_int(value), int)


@pytest.mark.parametrize("value", [3.5, "3.5", None, True, "", "x", float("nan"), float("inf"), "nan", [1]])
def test_what_is_no_id(value: Any) -> None:
    with pytest.raises(UnreadableValueError, match="not an integer"):
        as_int(value)


@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_an_id_survives_float_and_text(number: int) -> None:
    assert as_int(float(number)) == as_int(str(number)) == as_int(repr(float(number))) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [(1.0, 1), (0.5, 0.5), ("2.50", 2.5), (None, None), (float("nan"), None), ("NaN", None), ("", None), (True, 1)],
)
def test_numbers(value: Any, number: Any) -> None:
    assert as_number(value) == number


def test_a_number_that_is_none() -> None:
    with pytest.raises(UnreadableValueError, match="'many' is not a number"):
        as_number("many")


@pytest.mark.parametrize("value", [None, "", "nan", "None", "null", "[]", float("nan"), [], ()])
def test_empty_lists(value: Any) -> None:
    assert as_list(value) == []


@pytest.mark.parametrize("value", ["{}", "5", {"a": 1}, 5])
def test_what_is_no_list(value: Any) -> None:
    with pytest.raises(UnreadableValueError, match="a list is expected"):
        as_list(value)


def test_an_impression_in_plain_types() -> None:
    raw = [{"note_idx": 7.0, "position": 0.0, "click": 1.0, "like": None, "page_time": float("nan"), "share": -1.0}]
    assert CONVERTERS["details"](raw) == [
        {"note_idx": 7, "position": 0, "click": 1, "like": 0, "page_time": None, "share": -1}
    ]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("details", [{"click": 1}], "lacks 'note_idx'"),
        ("details", [{"note_idx": 1}], "lacks 'click'"),
        ("details", [5], "must be a struct"),
        ("pairs", [[1]], r"must be \[note_idx, score\]"),
        ("pairs", [[1, None]], "the score of note 1 is None"),
        ("ids", [1.5], "1.5 is not an integer"),
        ("text", 5, "text is expected"),
    ],
)
def test_what_is_wrong_is_said(kind: str, value: Any, words: str) -> None:
    with pytest.raises(UnreadableValueError, match=words):
        CONVERTERS[kind](value)


def test_an_unreadable_value_names_row_and_column() -> None:
    batch = pa.record_batch({"query": ["a", "b"], "ref_note_idx_list": ["[1]", "[1, oops]"]})
    with pytest.raises(DataError, match=r"dqa row 41, column ref_note_idx_list: '\[1, oops\]' is neither"):
        batch_rows(batch, config="dqa", first_row=40)


pair_lists = st.lists(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-100, 100)), max_size=5) | st.none())


@given(pair_lists)
@settings(max_examples=200, deadline=None)
def test_the_fast_way_gives_what_the_slow_way_gives(rows: list[Any]) -> None:
    raw = [None if row is None else [[float(number), score] for number, score in row] for row in rows]
    array = pa.array(raw, pa.list_(pa.list_(pa.float64())))
    fast = fast_pairs(array)
    assert fast == [CONVERTERS["pairs"](value) for value in array.to_pylist()]
    if len(raw) > 2:
        assert fast_pairs(array.slice(1)) == fast[1:] if fast else True


@pytest.mark.parametrize("rows", [[[[1.0]]], [[[1.0, np.nan]]], [[[1.5, 2.0]]], [[[1.0, None]]], [[None]]], ids=str)
def test_the_fast_way_leaves_faults_to_the_slow_way(rows: list[Any]) -> None:
    assert fast_pairs(pa.array(rows, pa.list_(pa.list_(pa.float64())))) is None
