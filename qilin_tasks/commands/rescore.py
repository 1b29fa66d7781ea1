"""`qilin-tasks rescore`: all metrics again from the samples, without a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qilin_tasks.metrics.own import OwnMetric


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser("rescore", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of compare, run or lm_eval with --log_samples")
    parser.add_argument(
        "--metadata", nargs="+", default=[], help="changed scoring settings: bertscore_model=… bertscore_layer=…"
    )
    parser.add_argument(
        "--include_path", action="append", default=[], help="folder of the YAML of tasks with metrics of their own"
    )
    parser.add_argument("--tasks", default="", help="only these tasks, separated by commas")
    parser.add_argument("--models", default="", help="only these models, separated by commas")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write new results beside the old ones and print what changed."""
    from tqdm import tqdm

    from qilin_tasks.errors import unknown
    from qilin_tasks.files import together
    from qilin_tasks.harness.metadata import parse_settings
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
    own: dict[str, dict[str, OwnMetric]] = {}
    if args.include_path:
        from qilin_tasks.harness.task_manager import own_metrics_of

        own = {result.task: own_metrics_of(result.task, args.include_path) for result in chosen if result.parts}
    # Whole or not at all over all models: half of a table rescored would compare what can't be compared.
    with together() as files:
        rescored = [
            rescore(original(result), changes, own.get(result.task), into=files)
            for result in tqdm(chosen, desc="rescoring", unit="result")
        ]
    for done in rescored:
        print(f"{done.result.model} {done.result.task}: {done.path}")
        for name, (before, after) in done.changes.items():
            if before is None or abs(before - after) > 1e-12:
                print(f"  {name}: {'new' if before is None else f'{before:.6f}'} -> {after:.6f}")
    return 0
