"""`qilin-tasks rescore`: all metrics again from the samples, without a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from qilin_tasks.commands.compare import parse_settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "rescore", help="metrics again from the samples, without a model", description=__doc__
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of compare, run or lm_eval with --log_samples")
    parser.add_argument(
        "--metadata", nargs="+", default=[], help="changed scoring settings: bertscore_model=… bertscore_layer=…"
    )
    parser.add_argument("--tasks", default="", help="only these tasks, separated by commas")
    parser.add_argument("--models", default="", help="only these models, separated by commas")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write new results beside the old ones and print what changed."""
    from qilin_tasks.errors import unknown
    from qilin_tasks.results.reader import find_results
    from qilin_tasks.results.rescore import original, rescore, settings_for

    results = find_results(args.runs)
    for flag, text, names in (
        ("--tasks", args.tasks, {result.task for result in results}),
        ("--models", args.models, {result.model for result in results}),
    ):
        for name in filter(None, text.split(",")):
            if name not in names:
                raise unknown(flag, name, names)
    tasks, models = (set(filter(None, text.split(","))) for text in (args.tasks, args.models))
    chosen = [r for r in results if (not tasks or r.task in tasks) and (not models or r.model in models)]
    changes = parse_settings(args.metadata, flag="--metadata")
    for result in chosen:
        settings_for(result, changes)
    for done in rescore([original(result) for result in chosen], changes):
        print(f"{done.result.model} {done.result.task}: {done.path}")
        for name, (before, after) in done.changes.items():
            if before is None or abs(before - after) > 1e-12:
                print(f"  {name}: {'new' if before is None else f'{before:.6f}'} -> {after:.6f}")
    return 0
