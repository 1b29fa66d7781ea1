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
from dataclasses import dataclass
from pathlib import Path

from demo_report import COMPARED, CONDITIONS, difference_lines, differences, load, sentence, table

REPO = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent
OUTPUT = REPO / ".demo"
MODELS = REPO / ".models"
ENCODER = "multilingual-e5-small"
BASELINES = ("lead", "reference", "empty")
#: Prompts that a model of this size reads in minutes on two cores. BERTScore's layer is the tasks' own default: every
#: layer of this encoder tells a query's own notes from other queries' (28 of 28 on the sample, by 3.1 to 4.2 standard
#: deviations, 3.5 at layer 8), and with the default one setting fewer differs from a run with bert-base-chinese.
SETTINGS = {
    "note_chars": 200,
    "context_chars": 800,
    "bertscore_model": f".models/{ENCODER}",
    "bertscore_layer": 8,
}


@dataclass(frozen=True)
class Asking:
    """What differs between a chat model and a base model, and what to know when reading the answers."""

    arguments: tuple[str, ...]
    stop: tuple[str, ...]
    about: str


#: A base model has no template, and nothing but a blank line ends its answer. Its tokenizer puts <bos> before the
#: prompt, so nothing is asked of the harness.
ASKING = {
    "gemma-3-270m": Asking((), ("\n\n",), "gemma-3-270m is a base model of 270 M parameters, which knows Chinese."),
    "SmolLM2-135M-Instruct": Asking(("--apply_chat_template",), (), "SmolLM2-135M-Instruct knows hardly any Chinese."),
    "tiny-qwen2": Asking(("--apply_chat_template",), (), "tiny-qwen2 is random: its numbers mean nothing."),
}
DEFAULT = "gemma-3-270m"


def run(name: str, command: list[str]) -> None:
    """Run one command with its output in .demo/NAME.log, and say how long it took."""
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
    print(f"  {time.monotonic() - started:.0f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=tuple(ASKING), default=DEFAULT, help="default: %(default)s")
    parser.add_argument("--limit", type=int, default=15, help="answered queries of the sample (default: %(default)s)")
    parser.add_argument("--max-gen-toks", type=int, default=64, help="tokens of an answer (default: %(default)s)")
    args = parser.parse_args()
    OUTPUT.mkdir(exist_ok=True)
    asking = ASKING[args.model]
    generation = {"max_gen_toks": args.max_gen_toks, **({"until": list(asking.stop)} if asking.stop else {})}
    common = [
        "--tasks", "qilin_dqa", "--limit", str(args.limit), "--metadata", json.dumps(SETTINGS), "--log_samples",
    ]  # fmt: skip

    run("install", ["qilin-tasks", "install"])
    model_args = f"pretrained={(MODELS / args.model).relative_to(REPO)},dtype=float32,max_model_len=2048"
    run(
        args.model,
        [
            "lm_eval", "--model", "vllm", "--model_args", f"{model_args},enforce_eager=True",
            "--batch_size", "auto", *asking.arguments, "--gen_kwargs", json.dumps(generation),
            "--output_path", f".demo/{args.model}", *common,
        ],
    )  # fmt: skip
    for strategy in BASELINES:
        run(
            strategy,
            [
                "qilin-tasks", "run", "--model", "qilin-baseline", "--model_args", f"strategy={strategy}",
                "--output_path", f".demo/{strategy}", *common,
            ],
        )  # fmt: skip
    runs = {name: load(OUTPUT / name) for name in (args.model, *BASELINES)}
    by_metric = {metric: differences(runs[args.model], metric) for metric in COMPARED}
    means = {condition: runs[args.model][condition].interval("rouge_l").value for condition in CONDITIONS}
    print(
        f"\nQilin DQA on the embedded sample (invented questions), {args.limit} queries a condition, mean (95 %).\n"
        f"{asking.about} BERTScore's encoder is {ENCODER}, layer {SETTINGS['bertscore_layer']}.\n"
    )
    print(table(runs))
    print(f"\n{args.model}, on the same queries, 95 % by paired bootstrap:\n{difference_lines(by_metric)}\n")
    print(sentence(args.model, means=means, against_none=by_metric["rouge_l"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
