"""`qilin-tasks prepare`: what it writes, what it refuses, and that nothing half-written stays behind."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.dqa_folder import DQA_SCHEMA, NOTES_SCHEMA, dqa_row, write_config

from qilin_tasks.commands import prepare as command
from qilin_tasks.commands.prepare import prepare
from qilin_tasks.errors import DataError, QilinTasksError, SettingError
from qilin_tasks.retrieval import workspace
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.pipeline import Settings
from qilin_tasks.retrieval.run_file import read_contexts, read_recipe, write_contexts
from qilin_tasks.sources.qilin import open_qilin

BM25_SETTINGS = Settings(retriever="bm25", k=5)
NOTES = [
    (3, "苹果", "红富士苹果"),
    (10, None, "梨子 好吃"),
    (11, "", None),
    (7, "苹果派", "做法：苹果切片"),
    (20, "桃子", ""),
]
QUERIES = ["苹果", "，", "苹果派做法", None, "梨子"]


def write_notes(folder: Path, notes: list[tuple[int, str | None, str | None]]) -> None:
    rows = [
        {"note_idx": note_idx, "note_title": title, "note_content": content, "note_type": 1, "image_path": []}
        for note_idx, title, content in notes
    ]
    write_config(folder, "notes", rows, NOTES_SCHEMA)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    rows = [dqa_row(index, query=query, dqa_output="-1" if index == 2 else "答") for index, query in enumerate(QUERIES)]
    write_config(folder, "dqa", rows, DQA_SCHEMA)
    write_notes(folder, NOTES)
    return folder


def run_command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["prepare", "--quiet", *arguments])
    return int(args.run(args))


def test_rankings_of_notes_with_gaps_nulls_and_any_order(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "bm25.parquet"
    source = open_qilin(str(data))
    assert run_command("--config", "dqa", "--data", str(data), "--retriever", "bm25", "--out", str(out)) == 0
    found = read_contexts(
        out, config="dqa", fingerprint=source.fingerprint("notes"), config_fingerprint=source.fingerprint("dqa")
    )
    index = BM25(
        [f"{title or ''} {text or ''}" for _, title, text in NOTES], language="zh", ids=["3", "10", "11", "7", "20"]
    )
    assert list(found) == [0, 1, 3, 4]  # row 2 has no answer
    assert found[0] == [(NOTES[position][0], score) for position, score in index.search("苹果", k=9)]
    assert found[1] == found[3] == []
    assert [note for note, _ in found[4]] == [10]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_recipe_says_how(data: Path, tmp_path: Path) -> None:
    out = prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.parquet", rows="all")
    recipe = read_recipe(out)
    assert recipe["parameters"] == {"analyzer": "lucene-zh", "k1": 0.9, "b": 0.4}
    assert (recipe["retriever"], recipe["top_k"], recipe["config"]) == ("bm25", 5, "dqa")
    assert (recipe["rows"], recipe["empty_rows"], recipe["corpus_size"]) == (5, [1, 3], 5)
    assert pq.read_table(out).column_names == ["row", "note_idx", "rank", "score"]


def test_a_finished_run_is_left_alone_and_another_recipe_is_refused(data: Path, tmp_path: Path) -> None:
    source = open_qilin(str(data))
    out = prepare(source, config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.parquet")
    before = (out.read_bytes(), out.stat().st_mtime_ns)
    prepare(source, config="dqa", settings=BM25_SETTINGS, out=out)
    assert (out.read_bytes(), out.stat().st_mtime_ns) == before
    other = Settings(retriever="bm25", k=5, k1=1.2)
    with pytest.raises(DataError, match=r"made by another recipe \(different: parameters\)"):
        prepare(source, config="dqa", settings=other, out=out)
    prepare(source, config="dqa", settings=other, out=out, overwrite=True)
    assert read_recipe(out)["parameters"]["k1"] == 1.2


def test_contexts_of_other_data_are_refused(data: Path, tmp_path: Path) -> None:
    source = open_qilin(str(data))
    out = prepare(source, config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.parquet")
    with pytest.raises(DataError, match="made from other notes"):
        read_contexts(out, config="dqa", fingerprint="0123456789abcdef")
    with pytest.raises(DataError, match="made from other rows"):
        read_contexts(out, config="dqa", fingerprint=source.fingerprint("notes"), config_fingerprint="0")
    with pytest.raises(DataError, match="made for the config 'dqa', asked for 'search_test'"):
        read_contexts(out, config="search_test", fingerprint=source.fingerprint("notes"))


def test_files_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run"):
        read_recipe(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("row")
    with pytest.raises(DataError, match="not a parquet run"):
        read_recipe(tmp_path / "text.parquet")
    pq.write_table(pa.table({"row": [1]}), tmp_path / "plain.parquet")
    with pytest.raises(DataError, match="without a recipe"):
        read_recipe(tmp_path / "plain.parquet")
    recipe = {"config": "dqa", "corpus_fingerprint": "a", "config_fingerprint": "b"}
    write_contexts(tmp_path / "cut.parquet", {0: [(1, 0.5)], 1: []}, recipe=recipe)
    assert read_contexts(tmp_path / "cut.parquet", config="dqa", fingerprint="a") == {0: [(1, 0.5)], 1: []}
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a parquet run"):
        read_contexts(tmp_path / "cut.parquet", config="dqa", fingerprint="a")


def test_repeated_note_ids_leave_no_file(data: Path, tmp_path: Path) -> None:
    write_notes(data, [*NOTES, (7, "again", "苹果")])
    with pytest.raises(DataError, match=r"1 document ids occur more than once \(7\)"):
        prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.parquet")
    assert not (tmp_path / "r.parquet").exists()


def test_fusion_and_trec_files(data: Path, tmp_path: Path) -> None:
    source = open_qilin(str(data))
    first = prepare(source, config="dqa", settings=BM25_SETTINGS, out=tmp_path / "a.parquet")
    second = prepare(source, config="dqa", settings=Settings(retriever="bm25", k=5, b=1.0), out=tmp_path / "b.parquet")
    fused = prepare(
        source, config="dqa", settings=Settings(retriever="rrf"), out=tmp_path / "rrf.parquet", runs=[first, second]
    )
    found = read_contexts(fused, config="dqa", fingerprint=source.fingerprint("notes"))
    assert [score for _, score in found[4]] == [pytest.approx(2 / 61)]
    assert [recipe["retriever"] for recipe in read_recipe(fused)["inputs"]] == ["bm25", "bm25"]
    trec = prepare(source, config="dqa", settings=Settings(retriever="run"), out=tmp_path / "t.trec", runs=[fused])
    back = prepare(source, config="dqa", settings=Settings(retriever="run"), out=tmp_path / "t.parquet", runs=[trec])
    assert read_contexts(back, config="dqa", fingerprint=source.fingerprint("notes")) == found
    with pytest.raises(SettingError, match="starts from 2 or more runs, not 1"):
        prepare(source, config="dqa", settings=Settings(retriever="rrf"), out=tmp_path / "x.parquet", runs=[first])
    with pytest.raises(DataError, match="lacks 1 of 5 queries, such as row 2"):
        prepare(
            source,
            config="dqa",
            settings=Settings(retriever="rrf"),
            out=tmp_path / "y.parquet",
            runs=[first, second],
            rows="all",
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retriever": "bm26"}, "retriever 'bm26': choose from bm25, dense"),
        ({"retriever": "bm25", "k": 0}, "k 0: choose"),
        ({"retriever": "mrrank"}, "needs a trained model"),
        ({"retriever": "weighted", "normalisation": "max"}, "normalisation 'max': choose from"),
    ],
)
def test_settings_are_checked_first(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Settings(**settings)


def test_a_second_writer_is_refused_and_the_first_goes_on(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"
    script = (
        "import sys\nfrom pathlib import Path\nfrom qilin_tasks.files import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(DataError, match="another process is writing this file"):
            prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=out)
        holder.kill()
    prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=out)
    assert out.exists()


def test_a_full_disk_leaves_no_half_file(data: Path, tmp_path: Path) -> None:
    # A limit on file sizes fails the write in the same place and way as a disk without space.
    out = tmp_path / "r.parquet"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, limits[1]))
    try:
        with pytest.raises(DataError, match=r"no space left.*run the same command again"):
            prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not out.exists()
    assert not list(tmp_path.rglob(".unfinished-*"))
    prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=out)
    assert out.exists()


def test_a_folder_that_can_not_be_made_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "no").write_text("a file stands in the folder's place")
    with pytest.raises(DataError, match="can't be written"):
        prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=tmp_path / "no" / "r.parquet")


def test_work_of_another_recipe_is_thrown_away(tmp_path: Path) -> None:
    folder = workspace.open_work(tmp_path / "r", {"k": 1})
    (folder / "block").write_text("old")
    assert (workspace.open_work(tmp_path / "r", {"k": 1}) / "block").exists()
    assert not (workspace.open_work(tmp_path / "r", {"k": 2}) / "block").exists()
    workspace.close_work(tmp_path / "r")
    assert not folder.exists()


@pytest.mark.slow
def test_killed_at_any_moment_the_result_is_the_same(shared: Path, tmp_path: Path, repo: Path) -> None:
    from support.dqa_folder import write_real_notes

    data = write_real_notes(tmp_path / "data", shared)
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, str(repo / "tests" / "support" / "kill_prepare.py"), str(data), str(work), "20"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result == {
        "status": 0,
        "killed": 20,
        "differences": 0,
        "resumed": result["resumed"],
        "left": ["killed.parquet", "undisturbed.parquet"],
    }


def test_errors_are_ours(data: Path, tmp_path: Path) -> None:
    with pytest.raises(QilinTasksError, match="config 'notes': choose from"):
        prepare(open_qilin(str(data)), config="notes", settings=BM25_SETTINGS, out=tmp_path / "r.parquet")
    with pytest.raises(SettingError, match=r"ends with \.parquet"):
        prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.csv")
    with pytest.raises(SettingError, match="limit 0"):
        prepare(open_qilin(str(data)), config="dqa", settings=BM25_SETTINGS, out=tmp_path / "r.parquet", limit=0)
