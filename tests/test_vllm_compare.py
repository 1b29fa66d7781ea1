"""`qilin-tasks compare` with the real vLLM engine: answers on disk one by one, and going on after a crash."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qilin_tasks.results.reader import find_results

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

GENERATE, LIKELIHOOD = "qilin_dqa_oracle", "qilin_search_pointwise"
LIMIT = 4


def compare(models: Path, out: Path) -> str:
    """Run the command over the sample and return what it said."""
    ran = subprocess.run(
        [
            sys.executable, "-m", "qilin_tasks.cli", "compare", str(models), "--tasks", f"{GENERATE},{LIKELIHOOD}",
            "--limit", str(LIMIT), "--metadata", "bertscore=off", "--gen_kwargs", "max_gen_toks=24", "--out", str(out),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    logs = "".join(path.read_text("utf-8")[-3000:] for path in out.glob("*/log.txt"))
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}{logs}"
    return ran.stdout + ran.stderr


def samples(out: Path, model: str, task: str) -> list[Any]:
    """What a model answered, by document."""
    (path,) = (out / model / task).glob("samples_*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line["resps"] for line in sorted(lines, key=lambda line: line["doc_id"])]


#: Rows of the engine, of tokens and of seconds carry a prefix.
ANSWERS = "SELECT key FROM responses WHERE key NOT LIKE '%:%'"


def lose(store: Path) -> tuple[int, int]:
    """Make a store look as after a crash in the middle of a batch; returns how many rows were kept and how many not.

    Of generations the engine's finished answers are there, of log-likelihoods the chunks that were complete.
    """
    connection = sqlite3.connect(store)
    with connection:
        raw = [key for (key,) in connection.execute("SELECT key FROM responses WHERE key LIKE 'raw:%' ORDER BY key")]
        keys = raw or [key for (key,) in connection.execute(f"{ANSWERS} ORDER BY key")]
        kept = keys[::2]
        marks = ",".join("?" * len(kept))
        connection.execute(f"DELETE FROM responses WHERE key NOT IN ({marks})", kept)
    connection.close()
    return len(kept), len(keys) - len(kept)


def test_vllm_in_a_comparison_goes_on_after_a_crash(tiny_llm: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    args = f"{{pretrained: {tiny_llm}, dtype: float32, max_model_len: 8192, enforce_eager: true}}"
    models = tmp_path / "models.yaml"
    models.write_text(
        f"- {{name: stock, backend: vllm, args: {args}}}\n- {{name: prefix, backend: qilin-vllm, args: {args}}}\n"
    )
    out = tmp_path / "runs"
    compare(models, out)
    results = {(r.model, r.task): r for r in find_results([out])}
    assert {key: result.n for key, result in results.items()} == {
        (model, task): LIMIT for model in ("stock", "prefix") for task in (GENERATE, LIKELIHOOD)
    }
    # One engine reads the prefix cache for log-likelihoods, the other does not: the numbers are the same.
    for task in (GENERATE, LIKELIHOOD):
        assert results["stock", task].values == results["prefix", task].values
    before = {task: samples(out, "stock", task) for task in (GENERATE, LIKELIHOOD)}

    for task in (GENERATE, LIKELIHOOD):
        kept, lost = lose(out / "stock" / "responses" / f"{task}.sqlite")
        assert kept > 0
        assert lost > 0
        for path in (out / "stock" / task).iterdir():
            path.unlink()
        (out / "stock" / task).rmdir()
    said = compare(models, out)
    assert f"stock {GENERATE}: " in said
    assert f"prefix {GENERATE}: reused" in said
    for task in (GENERATE, LIKELIHOOD):
        assert samples(out, "stock", task) == before[task]
        with sqlite3.connect(out / "stock" / "responses" / f"{task}.sqlite") as connection:
            (count,) = connection.execute(f"SELECT count(*) FROM ({ANSWERS})").fetchone()
        assert count == sum(map(len, before[task]))
