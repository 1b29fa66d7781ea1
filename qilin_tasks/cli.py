"""The console script: finds the command, prints its errors, decides the exit code; nothing else.

Exit codes: what the command returns (0, or 1 for "not in order"), 1 for an error of ours, 2 for wrong usage, 130 for
Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from qilin_tasks import __version__
from qilin_tasks.errors import QilinTasksError

#: Every command, in the order of `--help`; its module is `qilin_tasks.commands.<name>`, with `_` for `-`.
COMMANDS = (
    "install",
    "uninstall",
    "path",
    "run",
    "doctor",
    "prepare",
    "retrieve",
    "mrrank",
    "train-biencoder",
    "compare",
    "rescore",
    "score",
    "validate",
    "report",
    "upstream",
    "publish-docs",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; argparse itself leaves with 2 on wrong usage and 0 after `--help`."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(arguments)
    except QilinTasksError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        module = _module(name)
        # A command that belongs to another program's parser takes its arguments as they are, `--help` included.
        if hasattr(module, "run_raw"):
            return int(module.run_raw(arguments[1:]))
        parser = _parser([module])
    else:
        parser = _parser([_module(name) for name in COMMANDS])
    args = parser.parse_args(arguments)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    return int(args.run(args))


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"qilin_tasks.commands.{name.replace('-', '_')}")


def _parser(modules: Sequence[ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qilin-tasks",
        description="Qilin and ReQA as tasks of lm-evaluation-harness: install them, check, run, compare, report.",
    )
    parser.add_argument("--version", action="version", version=f"qilin-tasks {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in modules:
        module.add_parser(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
