"""The embedded sample: exact schema, the awkward rows on purpose, made whole or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.sample_rankings import rankings

from qilin_tasks.errors import DataError
from qilin_tasks.sources import sample as sample_module
from qilin_tasks.sources.layout import arrow_schemas
from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.sources.sample import sample_folder, sources, write_sample
from qilin_tasks.sources.sample_tables import load_yaml
from qilin_tasks.sources.schema import SCHEMA


@pytest.fixture(scope="module")
def source() -> QilinSource:
    return open_qilin("sample")


@pytest.fixture(scope="module")
def dqa(source: QilinSource) -> list[dict[str, Any]]:
    return source.rows("dqa", source.columns("dqa"))


def answered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["dqa_output"] and row["dqa_output"].strip() not in {"", "-1"}]


@pytest.mark.parametrize("config", list(SCHEMA))
def test_files_names_and_types_are_the_published_ones(config: str) -> None:
    files = sorted((sample_folder() / config).iterdir())
    shards = 2 if config == "notes" else 1
    assert [path.name for path in files] == [f"train-{n:05d}-of-{shards:05d}.parquet" for n in range(shards)]
    assert all(pq.read_schema(path).equals(arrow_schemas()[config]) for path in files)


def test_the_sample_passes_its_own_check(source: QilinSource) -> None:
    source.check(dict.fromkeys(SCHEMA))
    assert source.revision is None and source.name == "sample"


def test_sizes(source: QilinSource, dqa: list[dict[str, Any]]) -> None:
    assert source.note_count() >= 48
    assert len(answered(dqa)) >= 20
    flags = ("is_like_clk", "is_onebox_trace_clk", "is_content_clk", "is_experience_clk")
    assert len([row for row in answered(dqa) if any((row[name] or 0) > 0 for name in flags)]) >= 14
    assert source.row_count("search_test") >= 16 and source.row_count("search_train") >= 24
    assert source.row_count("recommendation_test") >= 16 and source.row_count("recommendation_train") >= 16


def test_note_idx_is_the_row_number_and_ids_are_in_range(source: QilinSource) -> None:
    ids = [n for batch in source.iter_notes(["note_idx"]) for n in batch.column(0).to_pylist()]
    assert ids == list(range(source.note_count()))
    for config in SCHEMA:
        names = [n for n in source.columns(config) if SCHEMA[config][n].kind in {"ids", "pairs", "details"}]
        source.check_note_ids(config, source.rows(config, names), names)


def test_the_awkward_rows_are_there(source: QilinSource, dqa: list[dict[str, Any]]) -> None:
    answers = [row["dqa_output"] for row in dqa]
    assert "-1" in answers and None in answers and "" in answers and "  \n" in answers
    raw = pq.read_table(sample_folder() / "dqa").column("ref_note_idx_list")
    assert raw.type == pa.list_(pa.float64())
    assert None in raw.to_pylist() and [] in raw.to_pylist()
    assert any(len(row["ref_note_idx_list"]) > len(set(row["ref_note_idx_list"])) for row in dqa)
    table = pq.read_table(sample_folder() / "notes", columns=["note_title", "note_content"])
    assert None in table.column("note_title").to_pylist() and None in table.column("note_content").to_pylist()
    contents = [text or "" for text in table.column("note_content").to_pylist()]
    assert max(map(len, contents)) > 3_000
    assert any("[话题]#" in text for text in contents)
    titles = [text or "" for text in table.column("note_title").to_pylist()]
    assert any("\u200b" in text for text in contents) and any("\u200d" in text for text in titles)
    assert any(ord(character) > 0xFFFF for text in contents for character in text)


def test_the_engagement_is_null_where_nothing_was_shown(dqa: list[dict[str, Any]]) -> None:
    shown = {row["row"] for row in answered(dqa)}
    assert {row["row"] for row in dqa if row["is_like_clk"] is not None} == shown


def test_answers_have_the_usual_length_and_lean_on_their_references(
    source: QilinSource, dqa: list[dict[str, Any]]
) -> None:
    notes = source.notes(range(source.note_count()))
    for row in answered(dqa):
        assert 100 <= len(row["dqa_output"]) <= 300
        text = "".join(notes[n].text for n in row["ref_note_idx_list"])
        if text:
            pairs = {row["dqa_output"][at : at + 2] for at in range(len(row["dqa_output"]) - 1)}
            assert sum(pair in text for pair in pairs) / len(pairs) > 0.3, row["query"]


def test_first_stage_lists_are_ranked_and_of_different_lengths(dqa: list[dict[str, Any]]) -> None:
    for column in ("bm25_results", "dpr_results"):
        for row in dqa:
            scores = [score for _, score in row[column]]
            ids = [number for number, _ in row[column]]
            assert scores == sorted(scores, reverse=True) and len(set(ids)) == len(ids) <= 20
    lengths = [len(row["bm25_results"]) for row in answered(dqa)]
    assert min(lengths) < 5 <= max(lengths)
    misses = [row for row in answered(dqa) if set(row["ref_note_idx_list"]) - {n for n, _ in row["bm25_results"][:5]}]
    assert misses, "BM25 must miss something, or Oracle could not be better"


def test_the_frozen_lists_are_what_their_script_makes() -> None:
    frozen = json.loads(sources()["rankings.json"])
    for config, columns in rankings().items():
        for column, lists in columns.items():
            for made, kept in zip(lists, frozen[config][column], strict=True):
                assert [number for number, _ in made] == [number for number, _ in kept]
                assert [score for _, score in made] == pytest.approx([score for _, score in kept], abs=2e-4)


def test_search_requests(source: QilinSource) -> None:
    columns = ["search_results", "search_result_details_with_idx", "search_idx", "query"]
    rows = source.rows("search_test", columns)
    exposed = [row["search_results"] for row in rows]
    assert all(5 <= len(ids) <= 12 for ids in exposed)
    assert any(len(set(ids)) < len(ids) for ids in exposed)
    details = [row["search_result_details_with_idx"] for row in rows]
    assert [[d["note_idx"] for d in one] for one in details] == exposed
    assert sum(not any(d["click"] for d in one) for one in details) == 1
    assert any(one[0]["position"] == 0 for one in details) and any(one[0]["position"] == 1 for one in details)
    times = [d["page_time"] for one in details for d in one]
    assert None in times and -1 in times and any((time or 0) > 0 for time in times)
    assert all(row["search_idx"] != row["row"] for row in rows)


def test_recommendation_requests(source: QilinSource) -> None:
    columns = ["rec_results", "rec_result_details_with_idx", "recent_clicked_note_idxs", "query"]
    rows = source.rows("recommendation_test", columns)
    notes = source.notes(range(source.note_count()))
    for row in rows:
        assert [d["note_idx"] for d in row["rec_result_details_with_idx"]] == row["rec_results"]
        assert row["query"] == "".join(notes[n].title for n in row["recent_clicked_note_idxs"])
    assert any(row["query"] == "" for row in rows)


def test_the_yaml_reads_the_same_without_the_c_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    files = sources()
    fast = [load_yaml(files, name) for name in files if name.endswith(".yaml")]
    monkeypatch.setattr(yaml, "CSafeLoader", yaml.SafeLoader, raising=False)
    assert [load_yaml(files, name) for name in files if name.endswith(".yaml")] == fast


def test_it_is_made_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path))
    folder = sample_folder()
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert sample_folder() == folder and list(tmp_path.iterdir()) == [folder]
    assert times == {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


@pytest.mark.parametrize("lost", ["dqa", "notes/train-00001-of-00002.parquet"])
def test_it_is_made_again_when_a_cleaner_took_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path))
    folder = sample_folder()
    for path in [folder / lost, *(folder / lost).glob("*")]:
        if path.is_file():
            path.unlink()
    assert sample_folder() == folder and list(tmp_path.iterdir()) == [folder]
    assert open_qilin("sample").row_count("dqa") == 37 and open_qilin("sample").note_count() == 58


def test_a_crash_while_it_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path))
    calls: list[object] = []

    def full(*args: object, **kwargs: object) -> None:
        calls.append(args)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(pq, "write_table", full)
        with pytest.raises(DataError, match=r"can't be written: .*No space left.*Set QILIN_TASKS_CACHE"):
            sample_folder()
    assert calls and list(tmp_path.iterdir()) == []
    assert open_qilin("sample").note_count() >= 48


def test_two_processes_make_the_same_folder(tmp_path: Path) -> None:
    code = "import sys; from qilin_tasks.sources.sample import sample_folder; print(sample_folder())"
    environment = {"QILIN_TASKS_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = {process.communicate(timeout=300)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert [str(path) for path in tmp_path.iterdir()] == list(answers)


def test_a_cache_that_cannot_be_made_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.delenv("QILIN_TASKS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(sample_module.tempfile, "gettempdir", lambda: str(tmp_path))
    assert sample_folder().parent.parent == tmp_path
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(blocked))
    with pytest.raises(DataError, match="Set QILIN_TASKS_CACHE to a folder that can be written"):
        sample_folder()


def test_a_copy_goes_into_a_new_folder_only(tmp_path: Path) -> None:
    copy = write_sample(tmp_path / "copy")
    assert open_qilin(str(copy)).fingerprint("notes") == open_qilin("sample").fingerprint("notes")
    with pytest.raises(DataError, match="is not empty"):
        write_sample(copy)
