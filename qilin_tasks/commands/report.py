"""`qilin-tasks report`: tables as Markdown and CSV, and one HTML page with statistics, plots and every sample."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser("report", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of compare, run or lm_eval with --log_samples")
    parser.add_argument("--out", required=True, type=Path, help="folder for the report's files")
    parser.add_argument("--title", default="Comparison of language models", help="title of the report")
    parser.add_argument("--resamples", type=int, default=10_000, help="bootstrap and permutation resamples")
    parser.add_argument("--seed", type=int, default=1234, help="seed of the resamples")
    parser.add_argument("--prices", type=Path, help="YAML of prices by model, or models.yaml with `prices`")
    parser.add_argument("--validity", type=Path, metavar="FILE", help="stored JSON of `qilin-tasks validate --json`")
    parser.add_argument(
        "--judged", type=Path, nargs="+", default=[], metavar="FILE", help="judgement-*.json of `qilin-tasks judge`"
    )
    parser.add_argument(
        "--one-file", action="store_true", help="shorten the texts until the page holds them all (about 25 MB)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build the report and say where it is."""
    from qilin_tasks.errors import SettingError
    from qilin_tasks.report.build import build

    if args.resamples < 100:
        raise SettingError(f"--resamples {args.resamples}: at least 100 are needed for a p value of 0.05 to mean much")
    built = build(
        args.runs,
        args.out,
        title=args.title,
        resamples=args.resamples,
        seed=args.seed,
        one_file=args.one_file,
        prices=args.prices,
        validity=args.validity,
        judged=args.judged,
        say=lambda text: print(f"{text} …", file=sys.stderr, flush=True),
    )
    for text in built.warnings:
        print(f"warning: {text}", file=sys.stderr)
    for path in built.files:
        print(path)
    return 0
