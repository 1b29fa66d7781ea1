from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.covers import draw, notes_with_covers
from support.evaluation import ScriptedModel, evaluate, metric
from support.ranking_folder import search_row, write_ranking

from qilin_tasks.errors import DataError, QilinTasksError, SettingError
from qilin_tasks.ranking.images import Covers, usable_images

TASK = "qilin_search_vlm"


class SeeingModel(ScriptedModel):
    """A scripted model that looks at its images as the harness's multimodal models do."""

    MULTIMODAL = True

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        self.images = [list(request.args[2]["visual"]) for request in requests]
        return super().generate_until(requests, disable_tqdm)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two requests over eight notes; cover 3 is missing, 4 is broken, 5 is cut off, note 6 has none."""
    notes = notes_with_covers(8, without=6, suffix="jpg")
    rows = [search_row(0, [0, 1, 2, 3], [1]), search_row(1, [4, 5, 6, 7], [7])]
    write_ranking(tmp_path / "data", notes=notes, search=rows)
    for i in (0, 1, 2, 5, 7):
        draw(tmp_path / "images" / "image" / f"{i}.jpg", shade=30 * i)
    (tmp_path / "images" / "image" / "4.jpg").write_bytes(b"no image")
    cut = tmp_path / "images" / "image" / "5.jpg"
    cut.write_bytes(cut.read_bytes()[:400])
    monkeypatch.setenv("QILIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("QILIN_IMAGES", str(tmp_path / "images"))
    return tmp_path


def test_each_prompt_carries_the_covers_of_its_candidates(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = SeeingModel("[1] > [2] > [3] > [4]")
    with caplog.at_level(logging.WARNING):
        results = evaluate([TASK], model, log_samples=True)
    assert "of 7 cover images" in caplog.text
    assert "1 are missing and 2 are broken (first: image/3.jpg)" in caplog.text
    assert metric(results, TASK, "images_missing") == (1 + 3) / 2
    assert metric(results, TASK, "valid_rate") == 1
    for request, images, missing in zip(model.seen, model.images, (1, 3), strict=True):
        assert request.args[0].count("<image>") == len(images) == 4 - missing
        assert all(image.mode == "RGB" and max(image.size) == 224 for image in images)
    assert "带 ＜image＞ 的内容" in model.seen[0].args[0]
    shown = [note["note_idx"] for note in model.seen[0].doc["candidates"] if note["note_idx"] != 3]
    reds = [
        image.getpixel((200, 200))[0] if image.width > 200 else image.getpixel((150, 200))[0]
        for image in model.images[0]
    ]
    assert [round(red / 30) for red in reds] == shown
    sample = results["samples"][TASK][0]
    assert "Covers(['image/" in json.dumps(sample["arguments"], default=str)


def test_windows_take_their_own_covers(data: Path) -> None:
    model = SeeingModel("")
    evaluate([TASK], model, metadata={"window": 3})
    assert [len(request.doc["window"]) for request in model.seen] == [2] * 12
    for request, images in zip(model.seen, model.images, strict=True):
        assert request.args[0].count("<image>") == len(images)


def test_text_only_models_are_refused_by_the_harness(data: Path) -> None:
    with pytest.raises(ValueError, match="multimodal"):
        evaluate([TASK], ScriptedModel("[1]"))


def test_without_images_any_model_is_asked_by_text_and_told_so(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("QILIN_IMAGES")
    model = ScriptedModel("[1]")
    results = evaluate([TASK], model)
    assert "QILIN_IMAGES is not set, so no cover is shown" in caplog.text
    assert len(model.seen) == 2 and all("<image>" not in request.args[0] for request in model.seen)
    assert all(len(request.args) == 2 for request in model.seen)
    assert metric(results, TASK, "images_missing") == 4


def test_a_folder_that_is_not_there_stops(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_IMAGES", str(data / "nowhere"))
    model = SeeingModel("[1]")
    with pytest.raises(SettingError, match=r"QILIN_IMAGES '.*nowhere': set it to the folder"):
        evaluate([TASK], model)
    assert not model.seen


def test_a_folder_without_any_of_the_images_stops(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_IMAGES", str(data / "data"))
    with pytest.raises(DataError, match="none of 7 cover images can be opened"):
        evaluate([TASK], SeeingModel("[1]"))


def test_paths_that_lead_out_of_the_folder_are_missing(tmp_path: Path) -> None:
    draw(tmp_path / "outside.jpg")
    draw(tmp_path / "root" / "inside.png")
    root = (tmp_path / "root").resolve()
    assert usable_images(["../outside.jpg", "inside.png", ""], root=root) == {"inside.png"}


def test_an_image_that_vanishes_is_an_error_not_a_blank(data: Path) -> None:
    covers = Covers(["image/0.jpg", "image/1.jpg"], max_side=50)
    assert covers[0].size == (37, 50)
    assert [image.size for image in covers[:1]] == [(37, 50)]
    (data / "images" / "image" / "1.jpg").unlink()
    with pytest.raises(QilinTasksError, match="can't be opened any more"):
        list(covers)


@pytest.mark.slow
def test_a_real_multimodal_model_ranks(data: Path, tiny_llm: Path, repo: Path) -> None:
    # hf-multimodal with a random two-layer LLaVA: the placeholders and the images reach a real processor.
    llava = data / "tiny-llava"
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(repo)}
    script = repo / "tests" / "support" / "tiny_llava.py"
    command = [
        *[sys.executable, str(script), str(tiny_llm), str(llava)],
        *["--model", "hf-multimodal", "--tasks", TASK, "--batch_size", "1"],
        *["--model_args", f"pretrained={llava},dtype=float32,max_length=4096,convert_img_format=True"],
        *["--include_path", str(repo / "lm_eval_tasks"), "--device", "cpu", "--gen_kwargs", "max_gen_toks=4"],
        *["--output_path", str(data / "out"), "--log_samples"],
    ]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = (data / "out").rglob("results_*.json")
    results = json.loads(file.read_text())
    assert results["results"][TASK]["images_missing,none"] == 2
    assert results["n-samples"][TASK]["effective"] == 2
    assert "|image:224|" in results["configs"][TASK]["metadata"]["signature"]
