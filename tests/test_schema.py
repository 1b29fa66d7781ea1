"""The schema check: everything that is missing or mistyped, in one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.sources.layout import arrow_schemas
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.schema import KINDS, NESTED, SCHEMA, Column, accepts, faults, required_columns
from qilin_tasks.sources.writing import write_table


@pytest.mark.parametrize("config", list(SCHEMA))
def test_the_published_types_pass_and_every_column_is_known(config: str) -> None:
    schema = arrow_schemas()[config]
    present = {field.name: field.type for field in schema}
    assert faults(config, SCHEMA[config], present | extra_optional(config, present), from_text=False) == []
    assert set(present) <= set(SCHEMA[config])
    assert set(required_columns(config)) <= set(present)


def extra_optional(config: str, present: dict[str, Any]) -> dict[str, Any]:
    """Optional columns that the published schema of this config lacks, as all-null columns."""
    return {name: pa.null() for name in SCHEMA[config] if name not in present and SCHEMA[config][name].optional}


def test_every_kind_of_the_table_is_defined() -> None:
    assert {column.kind for columns in SCHEMA.values() for column in columns.values()} == set(KINDS)


STRUCT = pa.struct([("note_idx", pa.float64()), ("click", pa.float64())])
ACCEPTED = [
    ("id", pa.int32()),
    ("id", pa.float64()),
    ("number", pa.bool_()),
    ("text", pa.large_string()),
    ("text", pa.dictionary(pa.int32(), pa.string())),
    ("text", pa.null()),
    ("ids", pa.list_(pa.float64())),
    ("ids", pa.large_list(pa.int64())),
    ("ids", pa.list_(pa.null())),
    ("ids", pa.string()),
    ("texts", pa.list_(pa.string())),
    ("pairs", pa.list_(pa.list_(pa.float64()))),
    ("pairs", pa.list_(pa.list_(pa.float64(), 2))),
    ("pairs", pa.large_string()),
    ("details", pa.list_(STRUCT)),
    ("details", pa.string()),
]
REFUSED = [
    ("id", pa.string()),
    ("id", pa.list_(pa.int64())),
    ("number", pa.string()),
    ("text", pa.int64()),
    ("text", pa.binary()),
    ("ids", pa.int64()),
    ("ids", pa.list_(pa.string())),
    ("texts", pa.list_(pa.int64())),
    ("pairs", pa.list_(pa.float64())),
    ("details", STRUCT),
    ("details", pa.list_(pa.struct([("note_idx", pa.int64())]))),
]


@pytest.mark.parametrize(("kind", "dtype"), ACCEPTED, ids=str)
def test_accepted_types(kind: str, dtype: Any) -> None:
    assert accepts(Column(kind, fields=("note_idx", "click")), dtype)


@pytest.mark.parametrize(("kind", "dtype"), REFUSED, ids=str)
def test_refused_types(kind: str, dtype: Any) -> None:
    assert not accepts(Column(kind, fields=("note_idx", "click")), dtype)


@pytest.mark.parametrize("kind", list(KINDS))
def test_in_a_csv_export_text_holds_every_kind(kind: str) -> None:
    assert accepts(Column(kind), pa.string(), from_text=True)
    assert accepts(Column(kind), pa.string()) == (kind in NESTED or kind in {"text", "any"})


def test_one_message_names_everything_at_once(tmp_path: Path) -> None:
    dqa = pa.table(
        {
            "querry": ["q"],
            "dqa_output": [1],
            "ref_note_idx_list": [["1"]],
            "search_result_details_with_idx": [[{"note_idx": 1}]],
        }
    )
    notes = pa.table({"note_idx": ["0"], "note_title": ["t"], "content": ["c"]})
    write_table(dqa, tmp_path / "dqa")
    write_table(notes, tmp_path / "notes")
    source = open_qilin(str(tmp_path))
    with pytest.raises(DataError) as caught:
        source.check(
            {
                "dqa": ["query", "dqa_output", "ref_note_idx_list", "search_result_details_with_idx", "search_idx"],
                "notes": ["note_idx", "note_title", "note_content"],
                "search_test": None,
            }
        )
    message = str(caught.value)
    assert "dqa.query: missing (did you mean 'querry'?)" in message
    assert "dqa.dqa_output: int64, where text are expected" in message or "dqa.dqa_output: int64" in message
    assert "dqa.ref_note_idx_list: list<" in message
    assert "with the fields note_idx, click" in message
    assert "dqa.search_idx: missing" in message
    assert "notes.note_idx: string, where integers" in message
    assert "notes.note_content: missing (did you mean 'content'?)" in message
    assert "no files of config 'search_test'" in message and "Configs there: dqa, notes" in message
    assert str(tmp_path) in message and "QILIN_DATA=sample" in message


def test_a_column_that_is_there_is_not_suggested_twice_over_a_spare_one() -> None:
    present = {"note_title": pa.string(), "note_contents": pa.string()}
    assert faults("notes", ["note_content"], present, from_text=False) == [
        "notes.note_content: missing (did you mean 'note_contents'?)"
    ]


def test_an_unknown_config_names_the_choices() -> None:
    source = open_qilin("sample")
    with pytest.raises(SettingError, match="config 'dqaa': choose from dqa, notes, recommendation_test"):
        source.columns("dqaa")
    with pytest.raises(SettingError, match="config 'dqaa'"):
        source.check({"dqaa": ["query"]})
