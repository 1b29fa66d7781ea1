"""Notes by id and as a stream: what is read, what is refused, how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.errors import DataError
from qilin_tasks.sources.notes import Note
from qilin_tasks.sources.parquet import ParquetTable
from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.sources.rows import check_note_ids
from qilin_tasks.sources.writing import write_table

COUNT = 2_500


def corpus(count: int = COUNT, **columns: Any) -> pa.Table:
    return pa.table(
        {
            "image_path": [[f"{n}.jpg", f"{n}b.jpg"] if n % 3 else None for n in range(count)],
            "note_idx": range(count),
            "note_title": [f"题{n}" if n % 7 else None for n in range(count)],
            "note_content": [f"文{n}" if n % 5 else None for n in range(count)],
            "like_num": [1.0] * count,
            **columns,
        }
    )


def note(number: int, *, images: bool = False) -> Note:
    return Note(
        number,
        f"题{number}" if number % 7 else "",
        f"文{number}" if number % 5 else "",
        (f"{number}.jpg", f"{number}b.jpg") if images and number % 3 else (),
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> QilinSource:
    folder = tmp_path_factory.mktemp("corpus")
    write_table(corpus(), folder / "notes", shards=3, row_group_size=100)
    return open_qilin(str(folder))


@given(st.sets(st.integers(0, COUNT - 1), max_size=60), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_set_of_ids_comes_back_in_order(source: QilinSource, ids: set[int], images: bool) -> None:
    found = source.notes(ids, images=images)
    assert found == {number: note(number, images=images) for number in ids}
    assert list(found) == sorted(ids)


def test_repeated_ids_are_one_note(source: QilinSource) -> None:
    assert source.notes([5, 3, 5]) == {3: note(3), 5: note(5)}


def test_text_is_title_space_content() -> None:
    assert Note(1, "标题", "正文").text == "标题 正文"


def test_only_the_row_groups_and_columns_needed_are_read(source: QilinSource, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, list[int], list[str]]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append((self.metadata.num_rows, kwargs["row_groups"], kwargs["columns"]))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    assert set(source.notes([5, 7, 205, 1999])) == {5, 7, 205, 1999}
    three = ["note_idx", "note_title", "note_content"]
    assert asked == [(833, [0], three), (833, [2], three), (834, [3], three)]


def test_without_statistics_every_group_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    pq.write_table(corpus(300), tmp_path / "notes" / "a.parquet", row_group_size=100, write_statistics=False)
    assert open_qilin(str(tmp_path)).notes([7, 299]) == {7: note(7), 299: note(299)}


@pytest.mark.parametrize("dtype", [pa.int32(), pa.uint64(), pa.float64()], ids=str)
def test_ids_of_any_numeric_type(tmp_path: Path, dtype: Any) -> None:
    write_table(corpus(300, note_idx=pa.array(range(300)).cast(dtype)), tmp_path / "notes", row_group_size=100)
    source = open_qilin(str(tmp_path))
    assert source.notes([0, 150]) == {0: note(0), 150: note(150)}
    assert next(source.iter_notes(["note_idx"])).schema.field("note_idx").type == pa.int64()


@pytest.mark.parametrize("dtype", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_texts_of_any_string_type(tmp_path: Path, dtype: Any) -> None:
    table = corpus(50)
    titles = pa.array(table.column("note_title").to_pylist()).cast(dtype)
    write_table(table.set_column(2, "note_title", titles), tmp_path / "notes")
    source = open_qilin(str(tmp_path))
    assert source.notes([0, 9]) == {0: note(0), 9: note(9)}
    assert next(source.iter_notes(["note_title"])).schema.field("note_title").type == pa.string()


def test_ids_that_are_not_there_are_named_and_counted(source: QilinSource) -> None:
    with pytest.raises(DataError, match=r"3 of 4 wanted notes.*\(2500 rows\): -1, 2500, 9999\. The notes table"):
        source.notes([3, -1, 2500, 9999])
    with pytest.raises(DataError, match=r"7 of 7 .*: 3000, 3001, 3002, 3003, 3004…"):
        source.notes(range(3000, 3007))


def test_a_repeated_note_is_refused(tmp_path: Path) -> None:
    write_table(corpus(10, note_idx=[0, 1, 2, 3, 4, 5, 6, 3, 8, 9]), tmp_path / "notes")
    source = open_qilin(str(tmp_path))
    assert source.notes([1]) == {1: note(1)}
    with pytest.raises(DataError, match="note_idx is not unique: 3 occur more than once"):
        source.notes([3])


@pytest.mark.parametrize(("bad", "words"), [(1.5, "1.5 is not an integer"), (None, "None is not an integer")])
def test_an_id_that_is_no_integer_names_its_row(tmp_path: Path, bad: Any, words: str) -> None:
    ids = [0.0, 1.0, bad, 3.0]
    write_table(corpus(4, note_idx=pa.array(ids, pa.float64())), tmp_path / "notes")
    with pytest.raises(DataError, match=rf"notes row 2, column note_idx: {words}"):
        open_qilin(str(tmp_path)).notes([3])


def test_ids_in_another_order_than_the_rows(tmp_path: Path) -> None:
    write_table(corpus(300).take(pa.array([*range(299, -1, -1)])), tmp_path / "notes", row_group_size=50)
    assert open_qilin(str(tmp_path)).notes([2, 298]) == {2: note(2), 298: note(298)}


@given(st.integers(0, COUNT + 10), st.integers(40, 900))
@settings(max_examples=20, deadline=None)
def test_the_stream_starts_anywhere_and_keeps_order(source: QilinSource, start: int, batch_size: int) -> None:
    batches = list(source.iter_notes(["note_idx", "note_title"], batch_size, start=start))
    assert [n for batch in batches for n in batch.column("note_idx").to_pylist()] == list(range(start, COUNT))
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    assert all(batch.schema.names == ["note_idx", "note_title"] for batch in batches)


def test_the_stream_names_a_missing_column(source: QilinSource) -> None:
    with pytest.raises(DataError, match=r"notes\.note_body: missing"):
        source.iter_notes(["note_body"])


def test_skipped_rows_are_not_decoded(source: QilinSource, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        groups.extend(kwargs["row_groups"])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    table = source._table("notes")
    assert isinstance(table, ParquetTable)
    first, batch = next(table.batches(["note_idx"], start=2_450))
    assert first == 2_450 and batch.num_rows == 50 and groups == [7, 8]


def test_ids_out_of_range_name_row_and_column() -> None:
    rows = [
        {"row": 0, "refs": [1, 2], "run": [(3, 0.5)], "details": [{"note_idx": 0, "click": 1}]},
        {"row": 4, "refs": [-1], "run": [(9, 0.5), (10, 0.1)], "details": [{"note_idx": 12, "click": 1}], "one": 99},
    ]
    columns = ["refs", "run", "details", "absent"]
    check_note_ids(rows[:1], columns, config="dqa", note_count=10)
    with pytest.raises(DataError) as caught:
        check_note_ids(rows, columns, config="dqa", note_count=10)
    assert str(caught.value).startswith(
        "note ids outside 0..9: -1 (dqa row 4, refs), 10 (dqa row 4, run), 12 (dqa row 4, details). The notes table"
    )
    with pytest.raises(DataError, match=r"-1 \(dqa row 4, refs\) and 3 more\."):
        check_note_ids(rows, [*columns, "one"], config="dqa", note_count=10, shown=1)


MEMORY = """
import resource, sys
from qilin_tasks.sources.qilin import open_qilin
source = open_qilin(sys.argv[1])
source.notes([0])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(source.notes(range(0, source.note_count(), 97))) == 619
for batch in source.iter_notes(["note_idx", "note_title", "note_content"], 4096): pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_memory_stays_far_below_the_table(tmp_path: Path) -> None:
    """60,000 notes of 2,000 characters are 360 MB as text; reading some, then streaming all, takes a fraction."""
    schema = pa.schema([("note_idx", pa.int64()), ("note_title", pa.string()), ("note_content", pa.string())])
    (tmp_path / "notes").mkdir()
    with pq.ParquetWriter(tmp_path / "notes" / "a.parquet", schema, use_dictionary=False) as writer:
        for start in range(0, 60_000, 1_000):
            contents = [f"{number}" + "长" * 2_000 for number in range(start, start + 1_000)]
            rows = {"note_idx": range(start, start + 1_000), "note_title": ["题"] * 1_000, "note_content": contents}
            writer.write_table(pa.table(rows, schema=schema))
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    assert float(done.stdout) < 200


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    broken = pa.array([b"ok", b"\xff\xfe", b"ok"], pa.binary()).view(pa.string())
    table = pa.table({"note_idx": [0, 1, 2], "note_title": ["a", "b", "c"], "note_content": broken})
    write_table(table, tmp_path / "notes")
    source = open_qilin(str(tmp_path))
    assert source.notes([2])[2].content == "ok"
    with pytest.raises(DataError, match=r"notes rows .*, column note_content: text that is not UTF-8"):
        source.notes([0, 1])
