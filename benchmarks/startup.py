"""How long our commands take to start, against the bare imports that the harness needs: one JSON line.

    python benchmarks/startup.py [--rounds 3]

Each is timed in processes of its own, in turn, and the quickest of each counts: other work on the machine only adds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
CLI = ("-m", "qilin_tasks.cli")


def seconds(arguments: Sequence[str]) -> float:
    """Wall-clock time of `python ARGUMENTS…`, on the embedded sample."""
    environment = {**os.environ, "QILIN_DATA": "sample", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(REPO)}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        model = ("--model", "qilin-baseline", "--model_args", "strategy=lead", "--metadata", "bertscore=off")
        commands = {
            "imports": ("-c", "import torch, transformers, datasets, lm_eval"),
            "help": (*CLI, "--help"),
            "baseline_run": (*CLI, "run", *model, "--tasks", "qilin_dqa", "--output_path", folder),
        }
        took = {name: [seconds(command) for _ in range(rounds)] for name, command in commands.items()}
    best = {name: min(times) for name, times in took.items()}
    figures = {f"{name}_s": round(value, 2) for name, value in best.items()}
    ratios = {"baseline_run_over_imports": round(best["baseline_run"] / best["imports"], 2)}
    print(json.dumps({"benchmark": "startup", "rounds": rounds, **figures, **ratios}))


if __name__ == "__main__":
    main()
