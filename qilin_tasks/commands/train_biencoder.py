"""`qilin-tasks train-biencoder`: the older name of `train --system bert-bi --recipe ours`, with its own options."""

from __future__ import annotations

import argparse
from pathlib import Path

from qilin_tasks.commands import train
from qilin_tasks.retrieval.pipeline import DEFAULT_MODEL


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "train-biencoder",
        description="As `qilin-tasks train --system bert-bi --recipe ours`; then `prepare --retriever dense --backend "
        "sentence-transformers --model FOLDER`.",
    )
    parser.add_argument("--data", help="sample, a folder, or a hub id (default: $QILIN_DATA, else THUIR/Qilin)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="hub name or folder (default %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the trained model")
    parser.add_argument("--limit", type=int, help="only the first rows")
    parser.add_argument(
        "--pairs-per-query", type=int, default=4, help="notes beside each clicked one (default %(default)s)"
    )
    parser.add_argument("--epochs", type=int, default=1, help="default %(default)s")
    parser.add_argument("--steps", type=int, help="stop after so many steps (default: all)")
    parser.add_argument("--batch-size", type=int, default=32, help="default %(default)s")
    parser.add_argument("--learning-rate", type=float, default=2e-5, help="default %(default)s")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a text (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """As `train`."""
    given = {
        "system": "bert-bi",
        "recipe": "ours",
        "config": "search_train",
        "rows": args.limit,
        "negatives": args.pairs_per_query,
        "input": None,
        "device": "auto",
        "save_every": 500,
        "quiet": False,
    }
    return train.run(argparse.Namespace(**{**vars(args), **given}))
