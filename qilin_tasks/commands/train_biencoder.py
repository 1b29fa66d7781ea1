"""`qilin-tasks train-biencoder`: fine-tunes a bi-encoder on the clicks of `search_train`, as the paper's BERT_bi."""

from __future__ import annotations

import argparse
from pathlib import Path

from qilin_tasks.retrieval.biencoder import train_biencoder, triplets
from qilin_tasks.retrieval.pipeline import DEFAULT_MODEL
from qilin_tasks.sources.qilin import open_qilin


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "train-biencoder",
        description="Fine-tune on clicked against exposed-not-clicked notes; then `prepare --retriever dense --backend "
        "sentence-transformers --model FOLDER`.",
    )
    parser.add_argument("--data", help="sample, a folder, or a hub id (default: $QILIN_DATA, else THUIR/Qilin)")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="hub name or folder (default %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the trained model")
    parser.add_argument("--limit", type=int, help="only the first rows")
    parser.add_argument("--pairs-per-query", type=int, default=4, help="default %(default)s")
    parser.add_argument("--epochs", type=float, default=1, help="default %(default)s")
    parser.add_argument("--steps", type=int, default=-1, help="stop after so many steps (default: all)")
    parser.add_argument("--batch-size", type=int, default=32, help="default %(default)s")
    parser.add_argument("--learning-rate", type=float, default=2e-5, help="default %(default)s")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a text (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train and say where the model is."""
    source = open_qilin(args.data)
    rows = source.rows("search_train", ["query", "search_result_details_with_idx"], limit=args.limit)
    pairs = triplets(rows, per_query=args.pairs_per_query, seed=args.seed)
    train_biencoder(
        pairs,
        lambda ids: {note_idx: note.text for note_idx, note in source.notes(set(ids)).items()},
        model=args.model,
        out=args.out,
        epochs=args.epochs,
        steps=args.steps,
        batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        max_length=args.max_length,
        seed=args.seed,
    )
    print(args.out)
    return 0
