"""`qilin-tasks compare` for tests: in this process for speed, as a process to be killed, on the embedded sample."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from qilin_tasks.commands import compare

TASKS = "qilin_dqa_na,qilin_dqa_bm25"
CHILD = "import sys; from support.comparing import main; sys.exit(main(sys.argv[1:]))"


def main(arguments: list[str]) -> int:
    """Parse and run, without the console script around it."""
    parser = argparse.ArgumentParser()
    compare.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", *arguments])
    return int(args.run(args))


def arguments(out: Path, *models: str, tasks: str = TASKS, extra: tuple[str, ...] = ()) -> list[str]:
    """A command line over the sample, BERTScore left out."""
    named = [part for model in models for part in ("--model", model)]
    return [*named, "--tasks", tasks, "--out", str(out), "--metadata", "bertscore=off", *extra]


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *command],
        cwd=Path(__file__).resolve().parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
