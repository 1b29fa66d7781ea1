"""Local folders: where files may lie, CSV exports, damaged files, fingerprints, rows."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.sources.files import config_files, patterns
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.sample import write_sample
from qilin_tasks.sources.schema import SCHEMA
from qilin_tasks.sources.writing import write_table

ROWS = ["query", "dqa_output", "ref_note_idx_list", "bm25_results", "search_result_details_with_idx", "is_like_clk"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "qilin")


def export_csv(source: Path, target: Path, config: str, text: Callable[[Any], str]) -> None:
    """One config as CSV with nested columns written by `text`, as pandas users export it."""
    table = pa.concat_tables([pq.read_table(path) for path in config_files(source, config)])
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow(["" if v is None else text(v) if isinstance(v, list | dict) else v for v in row.values()])


@pytest.mark.parametrize("text", [json.dumps, repr], ids=["json", "python"])
def test_csv_exports_give_the_same_rows_as_parquet(folder: Path, tmp_path: Path, text: Callable[[Any], str]) -> None:
    export = tmp_path / "export"
    for config in SCHEMA:
        export_csv(folder, export / f"{config}.csv", config, text)
    parquet, exported = open_qilin(str(folder)), open_qilin(str(export))
    exported.check(dict.fromkeys(SCHEMA))
    for config in SCHEMA:
        columns = [name for name in parquet.columns(config) if SCHEMA[config][name].kind != "any"]
        ours, theirs = exported.rows(config, columns), parquet.rows(config, columns)
        for row in theirs:  # CSV can't tell an empty text from a null, nor keep a lone blank line's NaN
            row.update({name: value or None for name, value in row.items() if isinstance(value, str)})
        assert ours == theirs, config
    wanted = range(exported.note_count())
    assert exported.notes(wanted, images=True) == parquet.notes(wanted, images=True)
    for start in (0, 40):
        ours, theirs = (
            pa.Table.from_batches(source.iter_notes(["note_idx", "note_content"], 7, start=start))
            for source in (exported, parquet)
        )
        assert ours == theirs and ours.num_rows == 58 - start


def test_a_config_folder_of_csv_files_and_a_mixed_folder(folder: Path, tmp_path: Path) -> None:
    export_csv(folder, tmp_path / "csv" / "dqa.csv", "dqa", json.dumps)
    lines = open_qilin(str(folder)).rows("dqa", ROWS)
    shutil.rmtree(folder / "dqa")
    (folder / "dqa").mkdir()
    shutil.move(tmp_path / "csv" / "dqa.csv", folder / "dqa" / "part-1.csv")
    source = open_qilin(str(folder))
    assert [row["query"] for row in source.rows("dqa", ROWS)] == [row["query"] for row in lines]
    assert source.notes([0])[0].title.startswith("大理")


def test_where_files_may_lie(folder: Path, tmp_path: Path) -> None:
    expected = open_qilin(str(folder)).rows("dqa", ROWS)
    under_data = tmp_path / "a"
    (under_data / "data").mkdir(parents=True)
    shutil.copytree(folder / "dqa", under_data / "data" / "dqa")
    single = tmp_path / "b"
    single.mkdir()
    shutil.copy(next((folder / "dqa").glob("*.parquet")), single / "dqa.parquet")
    other_names = tmp_path / "c" / "dqa"
    other_names.mkdir(parents=True)
    shutil.copy(next((folder / "dqa").glob("*.parquet")), other_names / "whatever.parquet")
    (other_names / ".whatever.parquet.tmp").write_bytes(b"half")
    (other_names / "_metadata.parquet").write_bytes(b"not data")
    fingerprint = open_qilin(str(folder)).fingerprint("dqa")
    for root in (under_data, single, tmp_path / "c"):
        source = open_qilin(str(root))
        assert source.rows("dqa", ROWS) == expected
        assert source.fingerprint("dqa") == fingerprint


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in range(12):
        table = pa.table({"note_idx": [number], "note_title": [f"t{number}"], "note_content": ["c"]})
        pq.write_table(table, _made(tmp_path / "notes") / f"part-{number}.parquet")
    batches = open_qilin(str(tmp_path)).iter_notes(["note_idx"])
    assert [number for batch in batches for number in batch.column(0).to_pylist()] == list(range(12))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_missing_shard_is_named(folder: Path) -> None:
    (folder / "notes" / "train-00000-of-00002.parquet").unlink()
    source = open_qilin(str(folder))
    with pytest.raises(DataError, match=r"'notes' has 1 of 2 shards; missing: 00000\. Download"):
        source.note_count()
    with pytest.raises(DataError, match="1 of 2 shards"):
        source.has("notes")


def test_shards_of_two_exports_are_refused(folder: Path) -> None:
    shutil.copy(folder / "notes" / "train-00000-of-00002.parquet", folder / "notes" / "train-00000-of-00001.parquet")
    with pytest.raises(DataError, match="2 different exports of 'notes'"):
        open_qilin(str(folder)).note_count()


def test_shards_with_other_columns_are_refused(tmp_path: Path) -> None:
    write_table(pa.table({"note_idx": [0], "note_title": ["a"]}), tmp_path / "notes")
    (tmp_path / "notes" / "train-00000-of-00001.parquet").rename(tmp_path / "notes" / "a.parquet")
    pq.write_table(pa.table({"note_idx": [1], "title": ["b"]}), tmp_path / "notes" / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: other columns than a\.parquet \(note_title, title\)"):
        open_qilin(str(tmp_path)).note_count()


@pytest.mark.parametrize("keep", [0, 3, 100, -100, -4])
def test_a_truncated_parquet_file_is_named(folder: Path, keep: int) -> None:
    path = folder / "dqa" / "train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=rf"{path.name}.*truncated or damaged: download"):
        open_qilin(str(folder)).rows("dqa", ["query"])


def test_a_file_damaged_in_the_middle_is_named(folder: Path) -> None:
    path = folder / "notes" / "train-00001-of-00002.parquet"
    content = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path).row_group(0)
    column = next(
        metadata.column(n) for n in range(metadata.num_columns) if metadata.column(n).path_in_schema == "note_content"
    )
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(bytes(content))
    source = open_qilin(str(folder))
    assert source.notes([0])[0].title
    with pytest.raises(DataError, match=rf"{path.name}.*truncated or damaged"):
        source.notes([source.note_count() - 1])


def test_a_missing_config_folder_names_what_is_there(folder: Path) -> None:
    shutil.rmtree(folder / "dqa")
    source = open_qilin(str(folder))
    assert not source.has("dqa") and source.has("notes")
    with pytest.raises(DataError, match=r"no files of config 'dqa'.*Configs there: notes, search_train") as caught:
        source.rows("dqa", ["query"])
    assert str(folder) in str(caught.value) and "QILIN_DATA=sample" in str(caught.value)


@pytest.mark.parametrize("spec", ["/no/such/folder", "./nowhere", "samples", "a/b/c", "THUIR/Qilin/notes", "~/nothing"])
def test_a_spec_that_is_nothing_is_refused(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=r"QILIN_DATA .*: choose from sample, an existing folder"):
        open_qilin(spec)


def test_a_file_is_no_spec(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("note_idx\n")
    with pytest.raises(SettingError, match=r"notes\.csv"):
        open_qilin(str(path))


def test_the_spec_comes_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", str(folder))
    assert open_qilin().name == str(folder.resolve())
    assert open_qilin("sample").name == "sample"
    monkeypatch.delenv("QILIN_DATA")
    assert open_qilin().name == "THUIR/Qilin"
    assert open_qilin(str(folder)).revision is None


def test_json_that_does_not_parse_names_row_and_column(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "export" / "dqa.csv"
    export_csv(folder, path, "dqa", json.dumps)
    text = path.read_text(encoding="utf-8")
    row = open_qilin(str(folder)).rows("dqa", ["query", "ref_note_idx_list"])[25]
    reference = f"[{row['ref_note_idx_list'][0]}.0]"
    assert text.count(f",{reference},") == 1
    path.write_text(text.replace(reference, reference[:-1]), encoding="utf-8")
    with pytest.raises(DataError, match=rf"dqa row 25, column ref_note_idx_list: '\{reference[:-1]}' is neither JSON"):
        open_qilin(str(tmp_path / "export")).rows("dqa", ["ref_note_idx_list"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty, where a header line is expected"),
        (b"query,dqa_output\n\xff\xfe,a\n", "UTF-8"),
        (b"query,dqa_output\na,b\nc\n", "row 1 has 1 fields, the header 2"),
        (b'query,dqa_output\na,"b\n', "truncated or not UTF-8 CSV"),
    ],
)
def test_damaged_csv_files_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "dqa.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"dqa\.csv: .*{words}"):
        open_qilin(str(tmp_path)).rows("dqa", ["query"])


def test_a_csv_with_byte_order_mark_and_line_breaks_inside_fields(tmp_path: Path) -> None:
    (tmp_path / "dqa.csv").write_bytes('\ufeffquery,dqa_output\r\n"两行\n的问题","答\r\n案"\r\n空,\r\n'.encode())
    assert open_qilin(str(tmp_path)).rows("dqa", ["query", "dqa_output"]) == [
        {"row": 0, "query": "两行\n的问题", "dqa_output": "答\r\n案"},
        {"row": 1, "query": "空", "dqa_output": None},
    ]


def test_columns_limit_and_row_numbers(folder: Path) -> None:
    source = open_qilin(str(folder))
    rows = source.rows("dqa", ["query"], limit=5)
    assert [row["row"] for row in rows] == [0, 1, 2, 3, 4] and set(rows[0]) == {"row", "query"}
    assert source.rows("dqa", ["query"], limit=0) == []
    assert len(source.rows("dqa", ["query"], limit=10**6)) == source.row_count("dqa") == 37
    chunks = list(source.iter_rows("dqa", ["query"], batch_size=10))
    assert [len(chunk) for chunk in chunks] == [10, 10, 10, 7] and chunks[2][0]["row"] == 20


def test_a_missing_column_is_an_error_not_a_null(folder: Path) -> None:
    with pytest.raises(DataError, match=r"dqa\.querry: missing \(did you mean 'query'\?\)"):
        open_qilin(str(folder)).rows("dqa", ["querry"])


def test_the_fingerprint_follows_the_content(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(folder, copy)
    first, second = open_qilin(str(folder)), open_qilin(str(copy))
    prints = {config: first.fingerprint(config) for config in SCHEMA}
    assert prints == {config: second.fingerprint(config) for config in SCHEMA}
    assert len(set(prints.values())) == len(prints)
    table = pq.read_table(copy / "dqa" / "train-00000-of-00001.parquet")
    queries = table.column("query").to_pylist()
    changed = table.set_column(
        table.column_names.index("query"), "query", pa.array([*queries[:-1], queries[-1] + "！"])
    )
    write_table(changed, copy / "dqa")
    assert open_qilin(str(copy)).fingerprint("dqa") != prints["dqa"]


def test_the_fingerprint_of_a_large_file_reads_footer_and_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qilin_tasks.sources import parquet

    monkeypatch.setattr(parquet, "WHOLE_FILE_BYTES", 1000)
    digests = set()
    for name, last in (("a", "z"), ("b", "z"), ("c", "y")):
        table = pa.table({"note_idx": range(3000), "note_title": ["t"] * 2999 + [last], "note_content": ["c"] * 3000})
        write_table(table, tmp_path / name / "notes")
        digests.add(open_qilin(str(tmp_path / name)).fingerprint("notes"))
    assert len(digests) == 2


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(DataError, match="no space left to write it"):
        write_table(pa.table({"a": [1]}), tmp_path / "dqa")
    assert list((tmp_path / "dqa").iterdir()) == []


def test_hub_patterns_cover_every_place_a_folder_may_have() -> None:
    assert patterns("dqa") == [
        *("dqa/*.parquet", "dqa/*.csv", "dqa.parquet", "dqa.csv"),
        *("data/dqa/*.parquet", "data/dqa/*.csv", "data/dqa.parquet", "data/dqa.csv"),
    ]
