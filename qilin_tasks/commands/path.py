"""`qilin-tasks path`: the folder for the harness's `--include_path`."""

from __future__ import annotations

import argparse

from qilin_tasks import tasks_folder


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "path",
        description="Print the folder with our tasks: lm_eval --include_path $(qilin-tasks path) --tasks …",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the folder, alone on one line."""
    print(tasks_folder())
    return 0
