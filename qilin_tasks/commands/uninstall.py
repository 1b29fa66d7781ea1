"""`qilin-tasks uninstall`: takes away exactly the files that `install` wrote."""

from __future__ import annotations

import argparse

from qilin_tasks.harness.install import uninstall
from qilin_tasks.harness.location import find_harness


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "uninstall",
        description="Remove exactly the files that `qilin-tasks install` wrote; files added or edited since stay.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what went and what stays."""
    harness = find_harness()
    print(f"lm-eval {harness.version}: {harness.tasks}")
    folders = uninstall(harness.tasks)
    for copy, stays in folders:
        if copy.state in ("foreign", "identical"):
            print(f"{copy.target.name}: not written by qilin-tasks, left as it is")
        elif stays:
            print(f"{copy.target.name}: removed our files; these are not ours and stay: {', '.join(stays)}")
        else:
            print(f"{copy.target.name}: removed")
    if not folders:
        print("nothing was installed")
    return 0
