"""`qilin-tasks doctor` over search, recommendation and their covers: labels, recent clicks, parts of the archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.covers import draw
from support.ranking_folder import recommendation_row, search_row, write_ranking

from qilin_tasks.commands.doctor import _of_tasks
from qilin_tasks.doctor.findings import Finding
from qilin_tasks.doctor.images import SOURCE, finding
from qilin_tasks.harness.metadata import parse_settings
from qilin_tasks.ranking.images import CoverSurvey

PARTS = {0: 7, 1: 7, 2: 48, 3: 114, 4: 114, 5: 114}
LISTWISE, GRADED = "qilin_search_vlm", "qilin_recommendation_vlm_pointwise"


def path_of(note: int) -> str:
    return f"image/part_{PARTS[note]}/1/{note}.jpg"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    notes = [
        {"note_idx": i, "note_title": f"题{i}", "note_content": "", "note_type": 1, "image_path": [path_of(i)]}
        for i in range(6)
    ]
    recommended = [
        recommendation_row(
            step, [0, 1], [1], user_idx=1, recent_clicked_note_idxs=[5, 4, 3, 2][3 - step :] if step < 4 else []
        )
        for step in range(4)
    ]
    write_ranking(
        tmp_path / "data",
        notes=notes,
        search=[search_row(0, [0, 1, 2, 3], [1]), search_row(1, [2, 3], [3])],
        recommendation=recommended,
    )
    for note in range(6):
        draw(tmp_path / "images" / path_of(note))
    monkeypatch.setenv("QILIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("QILIN_IMAGES", str(tmp_path / "images"))
    return tmp_path


def look(*tasks: str, **metadata: Any) -> dict[str, Finding]:
    """The findings on tasks, without those on the machine."""
    from argparse import Namespace

    args = Namespace(tasks=list(tasks), model=None, max_model_len=None, max_gen_toks=None)
    found = _of_tasks(args, parse_settings([json.dumps(metadata)], flag="--metadata"))
    return {each.check: each for each in found}


def test_covers_that_are_all_there(folder: Path) -> None:
    found = look(LISTWISE, GRADED)
    # Search shows the notes 0 to 3, recommendation 0, 1 and the clicked 2 to 5.
    assert found["images"] == Finding("images", "ok", "6 of 6 covers can be opened")
    assert look(LISTWISE)["images"].detail == "4 of 4 covers can be opened"
    assert "images" not in look("qilin_search_pointwise")


def test_missing_covers_are_counted_by_part_of_the_archive(folder: Path) -> None:
    (folder / "images" / path_of(0)).unlink()
    (folder / "images" / path_of(2)).write_bytes(b"no image")
    found = look(LISTWISE)["images"]
    assert found.status == "warn"
    assert "2 of 4 covers can be opened, 1 are missing and 1 broken" in found.detail
    assert "part_7 (1 of 2)" in found.detail and "part_48 (1 of 1)" in found.detail and "part_114" not in found.detail
    assert SOURCE in found.fix and "copies of part_7, part_48 from before 2025-05-31" in found.fix


def test_a_part_that_nobody_reported_is_not_called_broken() -> None:
    lost = finding(CoverSurvey(usable=("image/part_1/a.jpg",), missing=("image/part_2/b.jpg", "c.jpg"), broken=()))
    assert "part_2 (1 of 1), outside of any part (1 of 1)" in lost.detail and "could not be unpacked" not in lost.fix
    assert finding(CoverSurvey((), ("image/part_73/b.jpg",), ())).status == "fail"
    many = finding(CoverSurvey(("x",), tuple(f"image/part_{n}/a.jpg" for n in range(20)), ()))
    assert "and 12 other parts" in many.detail


def test_without_the_variable_it_is_said_where_images_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QILIN_IMAGES")
    found = look(LISTWISE, GRADED)
    assert found["images"].status == "warn" and SOURCE in found["images"].fix
    assert found[LISTWISE].status == "ok"
    assert found[GRADED].status == "fail" and "QILIN_IMAGES '': set it to the folder" in found[GRADED].detail
    monkeypatch.setenv("QILIN_IMAGES", str(folder / "nowhere"))
    assert look(LISTWISE)["images"].status == "fail"


def test_labels_beside_the_official_file(folder: Path) -> None:
    task = "qilin_search_pointwise"
    assert "--metadata qrels=search.test.qrels.csv" in look(task)["labels of search_test"].detail
    qrels = folder / "q.csv"
    qrels.write_text("qid,pid\n0,1\n1,3\n")
    found = look(task, qrels=str(qrels))["labels of search_test"]
    assert found.status == "ok" and "the clicks of 2 of 2 requests are those of" in found.detail
    qrels.write_text("qid,pid\n1,1\n2,3\n")
    found = look(task, qrels=str(qrels))["labels of search_test"]
    assert found.status == "fail" and "they agree when the row number is shifted by +1 (2 of 2)" in found.detail


@pytest.mark.parametrize(
    ("lists", "status", "text"),
    [
        ([[4, 3, 2], [5, 4, 3, 2]], "ok", "the first notes, which tasks show, are the recent ones"),
        ([[2, 3, 4], [2, 3, 4, 5]], "warn", "the last notes are the recent ones in this copy"),
        ([[2, 3, 4], [2, 3, 4]], "ok", "can't be told"),
    ],
)
def test_which_clicks_are_recent_in_this_copy(lists: list[list[int]], status: str, text: str, folder: Path) -> None:
    rows = [
        recommendation_row(n, [0, 1], [1], user_idx=1, recent_clicked_note_idxs=clicked)
        for n, clicked in enumerate(lists)
    ]
    write_ranking(folder / "data", notes=6, recommendation=rows)
    found = look("qilin_recommendation_pointwise")["recent clicks"]
    assert found.status == status and text in found.detail
    assert "recent clicks" not in look("qilin_search_pointwise")
