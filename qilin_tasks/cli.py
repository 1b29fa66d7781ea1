"""The console script: finds the command, prints its errors, decides the exit code; nothing else.

Exit codes: what the command returns (0, or 1 for "not in order"), 1 for an error of ours, 2 for wrong usage, 130 for
Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence
from types import ModuleType

from qilin_tasks import __version__
from qilin_tasks.errors import QilinTasksError

#: Every command and its line, in the order of `--help`; its module is `qilin_tasks.commands.<name>`, with `_` for `-`.
COMMANDS = {
    "install": "copy our tasks into lm_eval/tasks/",
    "uninstall": "remove from lm_eval/tasks/ what install wrote",
    "path": "print the folder for lm_eval --include_path",
    "run": "lm_eval with our tasks and models, and --batch_size auto (arguments: lm_eval's)",
    "doctor": "check everything before a GPU is started",
    "new-data": "your own questions and notes as a folder for the tasks custom_dqa_*",
    "prepare": "rank the notes for every query of a config",
    "retrieve": "rank any collection for any queries",
    "mrrank": "train MrRank's fusion of several runs, or routing between them",
    "train": "train a bi-encoder, a cross-encoder or DCN-V2 on clicks",
    "train-biencoder": "the older name of train --system bert-bi",
    "rank": "a system (bm25, bert-bi, bert-cross, dcn-v2, file) ranks what users were shown",
    "demo": "a table and a report in a minute, over the embedded sample",
    "compare": "many models over many tasks, resumable, with statistics",
    "rescore": "metrics again from the samples, without a model",
    "score": "score a run of any system (TREC or CSV) by the official metrics",
    "validate": "how far each metric can be trusted: edited notes, people's labels",
    "judge": "stored answers before a judge that is checked and corrected by people's labels",
    "report": "Markdown, CSV and one HTML page",
    "export": "results for Every Eval Ever, Hugging Face's .eval_results and Inspect's viewer",
    "upstream": "write our tasks into a checkout of lm-evaluation-harness",
    "publish-docs": "write the ready documents as a data set with a card",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; argparse itself leaves with 2 on wrong usage and 0 after `--help`."""
    _speak_any_encoding()
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
    parser, subparsers = _parser()
    if name in COMMANDS:
        module = module_of(name)
        # A command that belongs to another program's parser takes its arguments as they are, `--help` included.
        if hasattr(module, "run_raw"):
            return int(module.run_raw(arguments[1:]))
        module.add_parser(subparsers)
    else:
        for command, line in COMMANDS.items():
            subparsers.add_parser(command, help=line)
    args = parser.parse_args(arguments)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    return int(args.run(args))


def module_of(command: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(f"qilin_tasks.commands.{command.replace('-', '_')}")


def _parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="qilin-tasks",
        description="Qilin and ReQA as tasks of lm-evaluation-harness: install them, check, run, compare, report.",
    )
    parser.add_argument("--version", action="version", version=f"qilin-tasks {__version__}")
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND")


def _speak_any_encoding() -> None:
    """A terminal that knows no Chinese gets escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
