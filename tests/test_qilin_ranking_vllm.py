"""The four ranking tasks through the real vLLM engine, in one run of the literal command."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.harness import HarnessCopy, read_results, read_samples

from qilin_tasks.ranking.scorer import METRICS

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

TASKS = [f"qilin_{kind}_{way}" for kind in ("search", "recommendation") for way in ("listwise", "pointwise")]


@pytest.fixture(scope="module")
def output(harness: HarnessCopy, tiny_llm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vllm-ranking")
    harness.run(
        "lm_eval", "--tasks", "qilin_ranking", "--model", "vllm",
        "--model_args", f"pretrained={tiny_llm},dtype=float32,max_model_len=8192,enforce_eager=True",
        "--batch_size", "auto", "--gen_kwargs", "max_gen_toks=32", "--output_path", str(folder), "--log_samples",
        "--metadata", '{"window": 6, "context_chars": 1200}',
        QILIN_DATA="sample",
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_every_request_has_every_metric(output: Path, task: str) -> None:
    results = read_results(output)
    samples = read_samples(output, task)
    assert len(samples) == results["n-samples"][task]["effective"] == results["n-samples"][task]["original"]
    for name in METRICS:
        if name == "images_missing":
            continue
        value = results["results"][task][f"{name},none"]
        assert value == pytest.approx(sum(sample[name] for sample in samples) / len(samples), abs=1e-9)
        assert math.isfinite(results["results"][task][f"{name}_stderr,none"])
    assert 0 < results["results"][task]["mrr@10_repaired,none"] <= 1
    assert f"n:{len(samples)}|" in results["configs"][task]["metadata"]["signature"]


def test_pointwise_scores_are_the_models_own(output: Path) -> None:
    for task in TASKS[1::2]:
        for sample in read_samples(output, task):
            # The harness writes numbers into samples as text.
            scores = [float(response[0][0]) for response in sample["resps"]]
            n = len(sample["doc"]["candidates"])
            assert len(scores) == 2 * n
            differences = [yes - no for yes, no in zip(scores[:n], scores[n:], strict=True)]
            assert all(math.isfinite(value) for value in differences)
            assert len(set(differences)) > 1
            best = max(range(n), key=lambda i: differences[i]) + 1
            assert (sample["mrr@10"] == 1) == (best in sample["doc"]["relevant"])


def test_long_lists_went_in_windows(output: Path) -> None:
    samples = read_samples(output, "qilin_search_listwise")
    assert {len(sample["resps"]) for sample in samples} >= {1, 3}
    assert all(len(sample["resps"]) == sample["windows"] for sample in samples)
