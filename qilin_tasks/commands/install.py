"""`qilin-tasks install`: our task folders into this Python's harness, or, with `--check`, whether they are current."""

from __future__ import annotations

import argparse
import sys

from qilin_tasks.harness.install import CURRENT, STATES, Copy, file_names, install, survey
from qilin_tasks.harness.location import Harness, find_harness


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "install",
        description="Copy our task folders into the lm_eval/tasks/ of the lm-eval that this Python imports, release or "
        "editable, so that plain `lm_eval --tasks qilin_dqa_oracle` finds them. Run it again after an upgrade.",
    )
    parser.add_argument("--check", action="store_true", help="only tell whether they are current; exit 1 if not")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was written, or what would be; 1 when `--check` finds something that is not current."""
    harness = find_harness()
    print(f"lm-eval {harness.version}: {harness.tasks}")
    if harness.untested:
        print(f"note: {harness.untested}", file=sys.stderr)
    return _check(harness) if args.check else _install(harness)


def _check(harness: Harness) -> int:
    copies = survey(harness.tasks)
    for copy in copies:
        print(f"{copy.target.name}: {_describe(copy)}")
    if all(copy.state in CURRENT for copy in copies):
        return 0
    print("not current: run `qilin-tasks install`")
    return 1


def _describe(copy: Copy) -> str:
    shown = copy.files if copy.state in ("stale", "modified", "foreign") else ()
    return STATES[copy.state] + (f": {', '.join(shown)}" if shown else "")


def _install(harness: Harness) -> int:
    for copy in install(harness.tasks):
        name = copy.target.name
        if copy.state in CURRENT:
            print(f"{name}: {STATES[copy.state]}, nothing written")
        elif copy.source is None:
            print(f"{name}: removed, {STATES[copy.state]}")
        else:
            print(f"{name}: wrote {copy.target}")
            for file in file_names(copy.source):
                print(f"  {file}")
    return 0
