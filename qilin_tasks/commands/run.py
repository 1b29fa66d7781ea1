"""`qilin-tasks run …`: lm-eval in this process, with our tasks, our models and a batch size that uses the hardware."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

HELP = """\
qilin-tasks run ARGUMENTS… is `lm_eval ARGUMENTS…` with our task folders in its include path (yours stays), the model
`qilin-baseline`, and, where no --batch_size is given, --batch_size auto for the backends that gain by it. Tasks,
settings, data and a model's folder are looked at before any model is loaded. What follows is lm-eval's own help.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command; its arguments are lm-eval's and go to `run_raw` as they are."""
    subparsers.add_parser("run", add_help=False)


def run_raw(arguments: Sequence[str]) -> int:
    """Run `lm_eval ARGUMENTS…`; 1 where results were not saved."""
    from qilin_tasks.harness.command import run

    if list(arguments) in (["-h"], ["--help"]):
        print(HELP)
        arguments = ["run", "--help"]
    return run(arguments)
