"""The literal commands, with the real vLLM engine: in the harness's process, and behind a server."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.dqa_folder import write_real_notes
from support.harness import HarnessCopy, read_results, read_samples
from support.server import Server

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

CONDITIONS = ("na", "bm25", "bert", "oracle")
METRICS = (
    "rouge_l",
    "rouge_l_jieba",
    "bertscore_f1",
    "bertscore_precision",
    "bertscore_recall",
    "answer_chars",
    "empty_rate",
    "unfinished_reasoning_rate",
)
RATES = tuple(name for name in METRICS if name != "answer_chars")


def metadata(minilm: Path) -> str:
    return json.dumps({"bertscore_model": str(minilm), "bertscore_layer": 4})


def check_results(results: dict[str, Any], output: Path, *, n: int | None) -> None:
    """Every condition has every metric with its error, a signature, and a samples file that adds up to the table."""
    signatures = set()
    for condition in CONDITIONS:
        task = f"qilin_dqa_{condition}"
        row = results["results"][task]
        samples = read_samples(output, task)
        assert len(samples) == results["n-samples"][task]["effective"] == (n or results["n-samples"][task]["original"])
        for name in METRICS:
            value, error = row[f"{name},none"], row[f"{name}_stderr,none"]
            assert math.isfinite(value)
            assert math.isfinite(error)
            assert value == pytest.approx(sum(sample[name] for sample in samples) / len(samples), abs=1e-9)
            if name in RATES:
                assert 0 <= value <= 1
        signature = results["configs"][task]["metadata"]["signature"]
        assert signature.startswith("dqa|")
        assert f"ctx:{condition}|" in signature
        signatures.add(signature)
        generation = results["configs"][task]["generation_kwargs"]
        assert generation["do_sample"] is False
        assert generation["temperature"] == 0.0
    assert len(signatures) == len(CONDITIONS)
    group = results["groups"]["qilin_dqa"]
    mean = sum(results["results"][f"qilin_dqa_{condition}"]["rouge_l,none"] for condition in CONDITIONS) / 4
    assert group["rouge_l,none"] == pytest.approx(mean)


@pytest.fixture(scope="module")
def in_process(
    harness: HarnessCopy, tiny_llm: Path, bert_chinese_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """All four conditions, all documents of the sample, default settings; the results' folder and what was printed."""
    output = tmp_path_factory.mktemp("vllm-dqa")
    ran = harness.run(
        "lm_eval", "--tasks", "qilin_dqa", "--model", "vllm",
        "--model_args", f"pretrained={tiny_llm},dtype=float32,max_model_len=8192,enforce_eager=True",
        "--batch_size", "auto", "--gen_kwargs", "max_gen_toks=32", "--output_path", str(output), "--log_samples",
        QILIN_DATA="sample",
        HF_HUB_CACHE=str(bert_chinese_cache),
    )  # fmt: skip
    return output, ran.stdout


def test_the_literal_command_runs_all_four_conditions(in_process: tuple[Path, str]) -> None:
    output, _ = in_process
    check_results(read_results(output), output, n=None)


def test_the_printed_table_has_a_row_with_its_error_for_every_metric(in_process: tuple[Path, str]) -> None:
    _, printed = in_process
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if "|" in line]
    with_errors = {row[4] for row in rows if len(row) > 8 and row[7] == "±"}
    assert set(METRICS) <= with_errors


def test_what_the_model_wrote_is_in_the_samples_file(in_process: tuple[Path, str]) -> None:
    output, _ = in_process
    samples = read_samples(output, "qilin_dqa_oracle")
    assert len({sample["doc"]["doc_key"] for sample in samples}) == len(samples)
    assert any(sample["resps"][0][0] for sample in samples)
    for sample in samples:
        prompt = sample["arguments"]["gen_args_0"]["arg_0"]
        assert sample["doc"]["query"] in prompt
        assert all(note["content"] in prompt for note in sample["doc"]["notes"])


def test_the_tasks_run_against_a_server_through_its_chat_template(
    harness: HarnessCopy, vllm_server: Server, minilm: Path, tmp_path: Path
) -> None:
    harness.run(
        "lm_eval", "--tasks", "qilin_dqa", "--model", "local-chat-completions", "--apply_chat_template",
        "--model_args", f"model={vllm_server.model},base_url={vllm_server.url}/chat/completions,num_concurrent=8",
        "--gen_kwargs", "max_gen_toks=16", "--metadata", metadata(minilm), "--limit", "6",
        "--output_path", str(tmp_path), "--log_samples",
        QILIN_DATA="sample",
    )  # fmt: skip
    results = read_results(tmp_path)
    check_results(results, tmp_path, n=6)
    assert "chat:1" in results["configs"]["qilin_dqa_na"]["metadata"]["signature"]
    assert "/v1/chat/completions" in vllm_server.log.read_text(encoding="utf-8")


def test_real_notes_run_through_vllm(
    harness: HarnessCopy, vllm_server: Server, minilm: Path, shared: Path, tmp_path: Path
) -> None:
    """The 798 real notes in the published layout: hashtags, emoji and long contents reach the engine in one piece."""
    data, output = write_real_notes(tmp_path / "data", shared), tmp_path / "output"
    harness.run(
        "lm_eval", "--tasks", "qilin_dqa", "--model", "local-chat-completions", "--apply_chat_template",
        "--model_args", f"model={vllm_server.model},base_url={vllm_server.url}/chat/completions,num_concurrent=8",
        "--gen_kwargs", "max_gen_toks=16", "--metadata", metadata(minilm), "--limit", "3",
        "--output_path", str(output), "--log_samples",
        QILIN_DATA=str(data),
    )  # fmt: skip
    check_results(read_results(output), output, n=3)
    for sample in read_samples(output, "qilin_dqa_bm25"):
        assert len(sample["doc"]["notes"]) == 5
        assert "[话题]" not in json.dumps(sample["arguments"], ensure_ascii=False)


def test_a_server_gives_log_likelihoods_to_the_harness(vllm_server: Server) -> None:
    """What ranking tasks ask for with local-completions: log-probabilities of a given text, echoed."""
    import urllib.request

    body = {"model": vllm_server.model, "prompt": "请回答问题", "max_tokens": 1, "logprobs": 1, "echo": True}
    request = urllib.request.Request(
        f"{vllm_server.url}/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        answer = json.load(response)
    values = answer["choices"][0]["logprobs"]["token_logprobs"]
    assert values[0] is None
    assert len(values) > 2
    assert all(value < 0 for value in values[1:])
