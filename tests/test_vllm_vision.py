"""The three tasks with covers through vLLM's engine for pictures, `vllm-vlm`, in a comparison."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.covers import draw, notes_with_covers
from support.ranking_folder import recommendation_row, search_row, write_ranking

from qilin_tasks.results.reader import find_results

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

TASKS = {"qilin_search_vlm": 2, "qilin_search_vlm_pointwise": 8, "qilin_recommendation_vlm_pointwise": 6}


def test_pictures_reach_vllm(tiny_llm: Path, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests a task, a picture or a list of them each; every answer is in the samples and in the store."""
    write_ranking(
        tmp_path / "data",
        notes=notes_with_covers(18, without=6, suffix="png"),
        search=[search_row(0, [0, 1, 2, 3], [1]), search_row(1, [4, 5, 6, 7], [7])],
        recommendation=[
            recommendation_row(0, [0, 1, 2, 3], [2], recent_clicked_note_idxs=[8, 9, 6, 10]),
            recommendation_row(1, [4, 5], [5], recent_clicked_note_idxs=[]),
        ],
    )
    for i in set(range(18)) - {3, 6}:
        draw(tmp_path / "images" / "image" / f"{i}.png", shade=10 * i)
    monkeypatch.setenv("QILIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("QILIN_IMAGES", str(tmp_path / "images"))
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model = tmp_path / "tiny-idefics3"
    made = [sys.executable, str(repo / "tests" / "support" / "tiny_idefics3.py"), str(tiny_llm), str(model)]
    subprocess.run(made, check=True, capture_output=True)
    models = tmp_path / "models.yaml"
    args = f"{{pretrained: {model}, dtype: float32, max_model_len: 4096, enforce_eager: true}}"
    models.write_text(f"- {{name: idefics, backend: vllm-vlm, args: {args}}}\n")
    out = tmp_path / "runs"
    command = [
        *[sys.executable, "-m", "qilin_tasks.cli", "compare", str(models), "--tasks", ",".join(TASKS)],
        *["--gen_kwargs", "max_gen_toks=4", "--out", str(out)],
    ]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    logs = "".join(path.read_text("utf-8")[-3000:] for path in out.glob("*/log.txt"))
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}{logs}"
    found = {result.task: result for result in find_results([out])}
    assert {task: result.n for task, result in found.items()} == dict.fromkeys(TASKS, 2)
    for task, asked in TASKS.items():
        (samples,) = (out / "idefics" / task).glob("samples_*.jsonl")
        answers = [text for line in samples.open() for (text,) in json.loads(line)["resps"]]
        assert len(answers) == asked
        assert any(answers), "a random model writes something"
        with sqlite3.connect(out / "idefics" / "responses" / f"{task}.sqlite") as store:
            (kept,) = store.execute("SELECT count(*) FROM responses WHERE key NOT LIKE '%:%'").fetchone()
        assert kept == asked
