"""ReQA with the real vLLM engine: likelihoods in process and behind a server, and a real language model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import HarnessCopy, read_results, read_samples
from support.server import Server

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

REPO = Path(__file__).resolve().parents[1]
LIKELIHOOD = "reqa_xquad_en_likelihood"
REAL = ("reqa_xquad_en", "reqa_xquad_en_generate", "reqa_xquad_en_reader_na", "reqa_xquad_en_reader_bm25")
QUESTIONS = 10
RETRIEVAL = ("mrr", "r@1", "r@5", "r@10", "doc_mrr", "mrr_repaired", "candidate_recall", "valid_rate", "missing_rate")


def order(sample: dict[str, Any]) -> list[int]:
    """The candidates by log-likelihood, best first."""
    values = [float(response[0][0]) for response in sample["resps"]]
    return [int(i) for i in np.argsort(-np.array(values), kind="stable")]


def test_likelihood_ranks_are_the_same_in_process_and_through_a_server(
    harness: HarnessCopy, tiny_llm: Path, vllm_server: Server, tmp_path: Path
) -> None:
    common = ("lm_eval", "--tasks", LIKELIHOOD, "--log_samples", "--limit", "12")
    harness.run(
        *common, "--model", "vllm", "--batch_size", "auto", "--output_path", str(tmp_path / "engine"),
        "--model_args", f"pretrained={tiny_llm},dtype=float32,max_model_len=2048,enforce_eager=True",
        REQA_DATA="sample",
    )  # fmt: skip
    harness.run(
        *common, "--model", "local-completions", "--output_path", str(tmp_path / "server"),
        "--model_args", f"model={vllm_server.model},base_url={vllm_server.url}/completions,"
        "tokenized_requests=True,num_concurrent=8",
        REQA_DATA="sample",
    )  # fmt: skip
    engine, server = (read_samples(tmp_path / name, LIKELIHOOD) for name in ("engine", "server"))
    assert len(engine) == len(server) == 12
    for one, other in zip(engine, server, strict=True):
        assert one["doc"] == other["doc"]
        assert len(one["resps"]) == len(one["doc"]["candidates"])
        assert order(one) == order(other)
        assert one["mrr"] == other["mrr"]


def test_a_real_model_on_real_questions(harness: HarnessCopy, smollm: Path, shared: Path, tmp_path: Path) -> None:
    """Questions of XQuAD-en, SmolLM2-135M-Instruct, one engine: prompts fit, sentences are found."""
    harness.run(
        "lm_eval", "--tasks", ",".join(REAL), "--model", "vllm",
        "--model_args", f"pretrained={smollm},dtype=float32,max_model_len=3072,enforce_eager=True",
        "--batch_size", "auto", "--apply_chat_template", "--limit", str(QUESTIONS), "--gen_kwargs", "max_gen_toks=48",
        "--metadata", '{"bertscore": "off", "meteor": "off"}', "--output_path", str(tmp_path), "--log_samples",
        REQA_DATA=str(shared / "data"),
    )  # fmt: skip
    results = read_results(tmp_path)["results"]
    for task in REAL[:2]:
        # A task's name begins other tasks' names: its own file goes on with the date.
        (file,) = tmp_path.rglob(f"samples_{task}_[0-9]*.jsonl")
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == QUESTIONS
        for name in RETRIEVAL:
            assert 0.0 <= results[task][f"{name},none"] <= 1.0
            assert results[task][f"{name},none"] == pytest.approx(np.mean([row[name] for row in rows]))
    # The mean of 1/rank in a random order of 1,173 is below 0.01; a real model's sentences are far above.
    assert results[REAL[1]]["mrr,none"] > 0.3
    assert results[REAL[1]]["valid_rate,none"] == 1.0
    assert results[REAL[3]]["answer_shown,none"] >= 0.7 > results[REAL[2]]["answer_shown,none"] == 0.0
    assert all(0.0 <= results[task]["f1,none"] <= 1.0 for task in REAL[2:])


TAILS = """
import json, sys
from types import SimpleNamespace
from qilin_tasks.harness.vllm_prefix import PrefixCachedVLLM

if __name__ == "__main__":
    lm = PrefixCachedVLLM(
        pretrained=sys.argv[1], dtype="float32", max_model_len=1024, enforce_eager=True, batch_size="auto",
        block_size=32, enable_prefix_caching=True, max_num_batched_tokens=1024, max_num_seqs=16,
    )
    able, values = lm.score_tails, {}
    # Long contexts are computed in several steps, short ones whole; a context may end anywhere in a block.
    texts = [("苹果很甜。" * n, f"问题{n}是什么？" * (1 + n % 3)) for n in (0, 1, 2, 5, 9, 14, 30, 60, 110)]
    for tails in (False, True):
        for cached in (False, True):
            lm.model.reset_prefix_cache()
            lm._reads, lm.score_tails, lm.read_prefix_cache = None, tails and able, cached
            requests = [SimpleNamespace(args=pair) for pair in texts * 2]
            values[f"{tails} {cached}"] = [value for value, _ in lm.loglikelihood(requests, disable_tqdm=True)]
    print("VALUES " + json.dumps({"able": able, "values": values}), flush=True)
"""


def test_the_output_layer_over_what_is_scored_gives_the_same_values(
    harness: HarnessCopy, tiny_llm: Path, tmp_path: Path
) -> None:
    """`qilin-vllm` against vLLM's own prompt log-probabilities, with and without its prefix cache, in one engine."""
    script = tmp_path / "tails.py"
    script.write_text(TAILS, encoding="utf-8")
    ran = harness.run(sys.executable, str(script), str(tiny_llm), PYTHONPATH=f"{harness.folder}:{REPO}")
    seen = json.loads(
        next(line for line in ran.stdout.splitlines() if line.startswith("VALUES ")).removeprefix("VALUES ")
    )
    assert seen["able"] is True
    stock = seen["values"]["False False"]
    assert len(stock) == 18 and all(value < 0 for value in stock)
    for name, values in seen["values"].items():
        assert values == pytest.approx(stock, abs=1e-4), name
