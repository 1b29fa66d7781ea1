"""The VLM's input of the paper: a prompt and a picture a note, graded; in recommendation with the clicked covers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.covers import draw, notes_with_covers
from support.evaluation import ScriptedModel, evaluate, metric
from support.ranking_folder import recommendation_row, search_row, write_ranking

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.ranking.images import StackedCover

SEARCH, RECOMMENDATION = "qilin_search_vlm_pointwise", "qilin_recommendation_vlm_pointwise"
SMALL = {"image_side": 110}
HISTORY = [7, 8, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17]
BROKEN, MISSING, WITHOUT = 4, 3, 6


class Grader(ScriptedModel):
    """Looks at its pictures, and grades each note by a table."""

    MULTIMODAL = True

    def __init__(self, grades: dict[int, str]) -> None:
        super().__init__("")
        self.grades, self.pictures = grades, []

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        super().generate_until(requests, disable_tqdm)
        self.pictures = [list(request.args[2]["visual"]) for request in requests]
        return [self.grades.get(note_of(request), "") for request in requests]


def note_of(request: Any) -> int:
    return int(request.doc["candidates"][request.doc["place"] - 1]["note_idx"])


def shade(note: int) -> int:
    return 10 * note + 10


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eighteen notes, each cover of its own red; 3 is missing, 4 broken, 6 has none."""
    notes = notes_with_covers(18, without=WITHOUT, suffix="png")
    write_ranking(
        tmp_path / "data",
        notes=notes,
        search=[search_row(0, [0, 1, 2, 3], [1]), search_row(1, [4, 5, 6, 7], [7])],
        recommendation=[
            recommendation_row(0, [0, 1, 2, 3], [2], recent_clicked_note_idxs=HISTORY),
            recommendation_row(1, [4, 5], [5], recent_clicked_note_idxs=[]),
        ],
    )
    for i in set(range(18)) - {BROKEN, MISSING, WITHOUT}:
        draw(tmp_path / "images" / "image" / f"{i}.png", shade=shade(i))
    (tmp_path / "images" / "image" / f"{BROKEN}.png").write_bytes(b"no image")
    monkeypatch.setenv("QILIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("QILIN_IMAGES", str(tmp_path / "images"))
    return tmp_path


def red(image: Any, height: float) -> int:
    """The red of a picture at a share of its height, right of the drawn digits."""
    return int(image.getpixel((int(image.width * 0.8), int(image.height * height)))[0])


def test_each_note_has_a_prompt_and_its_cover(data: Path) -> None:
    model = Grader({0: "10", 1: "90", 2: "20", 3: "20", 4: "80", 5: "60", 6: "大概40", 7: "没有数"})
    results = evaluate([SEARCH], model, metadata=SMALL, log_samples=True)
    assert len(model.seen) == 8
    for request, pictures in zip(model.seen, model.pictures, strict=True):
        note, prompt = note_of(request), request.args[0]
        assert prompt.count("<image>") == len(pictures) == 1
        assert f"标题{note}" in prompt and sum(f"标题{i}" in prompt for i in range(8)) == 1
        assert "请你判断笔记是否相关，如果图片不是空白，则也考虑图片内容。" in prompt
        assert pictures[0].size == (110, 110)
        assert red(pictures[0], 0.5) == (255 if note in (BROKEN, MISSING, WITHOUT) else shade(note))
    # Row 0: note 1, the clicked one, first. Row 1: note 7 has no grade and is not ranked; repaired it is the last.
    assert metric(results, SEARCH, "mrr@10") == pytest.approx((1 + 0) / 2)
    assert metric(results, SEARCH, "mrr@10_repaired") == pytest.approx((1 + 1 / 4) / 2)
    assert metric(results, SEARCH, "valid_rate") == 0.5
    assert metric(results, SEARCH, "missing_rate") == (0 + 1 / 4) / 2
    assert metric(results, SEARCH, "tied_rate") == (2 / 4 + 0) / 2
    assert metric(results, SEARCH, "images_missing") == (1 + 2) / 2
    assert "StackedCover('image/" in json.dumps(results["samples"][SEARCH][0]["arguments"], default=str)


def test_recommendation_shows_the_first_ten_clicked_covers_above_the_candidates(data: Path) -> None:
    model = Grader(dict.fromkeys(range(8), "50"))
    results = evaluate([RECOMMENDATION], model, metadata=SMALL)
    assert len(model.seen) == 6
    for request, (picture,) in zip(model.seen, model.pictures, strict=True):
        note, asked = note_of(request), request.doc["doc_key"]
        assert red(picture, 0.75) == (255 if note in (BROKEN, MISSING) else shade(note))
        if asked == 1:
            assert red(picture, 0.25) == 255
            continue
        strips = [red(picture, 0.5 * (place + 0.5) / 10) for place in range(10)]
        # Squeezing mixes neighbours at their borders only.
        expected = [255 if clicked == WITHOUT else shade(clicked) for clicked in HISTORY[:10]]
        assert strips == pytest.approx(expected, abs=12)
    assert metric(results, RECOMMENDATION, "tied_rate") == 1


def test_baselines_grade(data: Path) -> None:
    for strategy, value in (("oracle", 1.0), ("constant", None), ("empty", 0.0)):
        results = evaluate([SEARCH, RECOMMENDATION], QilinBaseline(strategy=strategy), metadata=SMALL)
        for task in (SEARCH, RECOMMENDATION):
            if value is not None:
                assert metric(results, task, "mrr@10") == value
            assert metric(results, task, "tied_rate") == (1 if strategy == "constant" else 0)


def test_missing_covers_stop_before_anything_is_asked(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Grader({})
    monkeypatch.setenv("QILIN_IMAGES", str(data / "data"))
    with pytest.raises(DataError, match="none of 15 cover images can be opened"):
        evaluate([RECOMMENDATION], model, metadata=SMALL)
    monkeypatch.delenv("QILIN_IMAGES")
    monkeypatch.setenv("QILIN_DATA", str(data / "nowhere"))
    with pytest.raises(SettingError, match="QILIN_IMAGES '': set it to the folder of Qilin's images"):
        evaluate([SEARCH], model, metadata=SMALL)
    assert not model.seen


def test_a_picture_is_one(data: Path) -> None:
    cover = StackedCover("image/0.png", None, side=30)
    assert len(cover) == len(list(cover)) == len(cover[:]) == 1 and cover[-1].size == (30, 30)
    with pytest.raises(IndexError):
        cover[1]
    (data / "images" / "image" / "0.png").unlink()
    with pytest.raises(DataError, match="can't be opened any more"):
        cover[0]


@pytest.mark.slow
def test_a_real_multimodal_model_grades(data: Path, tiny_llm: Path, repo: Path) -> None:
    llava = data / "tiny-llava"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(repo)}
    command = [
        *[sys.executable, str(repo / "tests" / "support" / "tiny_llava.py"), str(tiny_llm), str(llava)],
        *["--model", "hf-multimodal", "--tasks", f"{SEARCH},{RECOMMENDATION}", "--batch_size", "2"],
        *["--model_args", f"pretrained={llava},dtype=float32,max_length=2048,convert_img_format=True"],
        *["--include_path", str(repo / "lm_eval_tasks"), "--device", "cpu", "--gen_kwargs", "max_gen_toks=4"],
        *["--output_path", str(data / "out"), "--log_samples"],
    ]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = (data / "out").rglob("results_*.json")
    results = json.loads(file.read_text())
    assert [results["n-samples"][task]["effective"] for task in (SEARCH, RECOMMENDATION)] == [2, 2]
    assert "|image:stacked1024|" in results["configs"][SEARCH]["metadata"]["signature"]
    # Six notes and eight were asked one by one, and each answer is in the samples.
    answers = {
        task: sum(len(json.loads(line)["resps"]) for line in next((data / "out").rglob(f"samples_{task}_*")).open())
        for task in (SEARCH, RECOMMENDATION)
    }
    assert answers == {SEARCH: 8, RECOMMENDATION: 6}
