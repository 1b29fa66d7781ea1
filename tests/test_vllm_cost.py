"""Tokens beside vLLM's answers are those of the engine's own counters, over a loss and a second start."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.instance import Instance

from qilin_tasks.harness.models import load_model
from qilin_tasks.harness.response_store import ResponseStore, stored_spent
from qilin_tasks.harness.usage import ENGINE

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

WHO: dict[str, Any] = {"backend": "vllm", "args": {}}
GENERATION = {"until": ["。"], "max_gen_toks": 9, "temperature": 0.0}


def counters(lm: Any) -> tuple[int, int]:
    """The engine's own counts of prompt and generated tokens since it started."""
    values = {metric.name: getattr(metric, "value", 0) for metric in lm.model.model.get_metrics()}
    return int(values["vllm:prompt_tokens"]), int(values["vllm:generation_tokens"])


def ask(lm: Any) -> None:
    texts = ["煮鸡蛋要几分钟", "北京三日游", "防晒霜", "how long is a piece of string", "防晒霜"]
    generations = [Instance("generate_until", {}, (text, dict(GENERATION)), i) for i, text in enumerate(texts)]
    likelihoods = [Instance("loglikelihood", {}, (text, " 很久"), i) for i, text in enumerate(texts)]
    lm.generate_until(generations)
    lm.loglikelihood(likelihoods)


def test_the_counts_are_the_engine_s(tiny_llm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    args = {
        "pretrained": str(tiny_llm), "dtype": "float32", "max_model_len": 512, "enforce_eager": True,
        "disable_log_stats": False, "enable_prefix_caching": False,
    }  # fmt: skip
    lm = load_model("vllm", args, batch_size="auto", chunk=2)
    path = tmp_path / "s.sqlite"
    before = counters(lm)
    with ResponseStore(path, identity=WHO) as lm.store:
        ask(lm)
        spent = lm.store.spent()
    after = counters(lm)
    assert (spent.prompt, spent.generated) == (after[0] - before[0], after[1] - before[1])
    assert (spent.counted, spent.sources, spent.reasoning) == (10, (ENGINE,), 0)
    assert spent.seconds > 0

    # As after a crash in the middle of the batch: some of the engine's answers are there, no task's.
    connection = sqlite3.connect(path)
    with connection:
        kept = sorted(key for (key,) in connection.execute("SELECT key FROM responses WHERE key LIKE 'raw:%'"))[::2]
        keep = [*kept, *(f"tokens:{key}" for key in kept)]
        connection.execute(f"DELETE FROM responses WHERE key NOT IN ({','.join('?' * len(keep))})", keep)
    connection.close()
    assert stored_spent(path, identity=WHO).counted == len(kept) == 3
    with ResponseStore(path, identity=WHO) as lm.store:
        ask(lm)
        again = lm.store.spent()
    assert (again.prompt, again.generated, again.counted) == (spent.prompt, spent.generated, spent.counted)
