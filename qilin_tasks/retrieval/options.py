"""The command line options that `prepare` and `retrieve` share, and what they mean."""

from __future__ import annotations

import argparse
from pathlib import Path

from qilin_tasks.retrieval.fusion import NORMALISATIONS
from qilin_tasks.retrieval.pipeline import DEFAULT_MODEL, RETRIEVERS, Settings
from qilin_tasks.retrieval.workers import available_cores


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of all retrievers to a command."""
    parser.add_argument("--retriever", required=True, choices=sorted(RETRIEVERS), help="how to rank")
    parser.add_argument("--top-k", type=int, default=100, help="documents kept for each query (default %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="file to write: .parquet, or .trec / .run (also .gz)")
    parser.add_argument("--runs", type=Path, nargs="+", default=[], help="runs to start from: .parquet or TREC files")
    parser.add_argument("--overwrite", action="store_true", help="replace a finished --out that another recipe made")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    bm25 = parser.add_argument_group("bm25")
    bm25.add_argument("--k1", type=float, default=0.9, help="term saturation (default %(default)s, Anserini's)")
    bm25.add_argument("--b", type=float, default=0.4, help="length normalisation (default %(default)s, Anserini's)")
    bm25.add_argument(
        "--workers",
        type=int,
        default=available_cores(),
        help="processes, some 600 MB each; the result is the same (default: one a core, %(default)s here)",
    )
    dense = parser.add_argument_group("dense, rerank")
    dense.add_argument("--model", default=DEFAULT_MODEL, help="hub name or folder (default %(default)s)")
    dense.add_argument(
        "--backend",
        default="mean-pooling",
        choices=("mean-pooling", "sentence-transformers", "vllm"),
        help="dense: how the model is run (default %(default)s, as the paper's BERT_bi)",
    )
    dense.add_argument("--max-length", type=int, help="tokens of a text (default 256, or the model's own)")
    dense.add_argument("--batch-size", type=int, default=64, help="texts at a time (default %(default)s)")
    dense.add_argument("--query-prompt", help="dense: text before each query, as 'query: ' (default: the model's own)")
    dense.add_argument("--document-prompt", help="dense: text before each document (default: the model's own)")
    dense.add_argument("--vectors", type=Path, help="dense: folder that keeps the corpus's vectors for the next time")
    dense.add_argument("--approximate", action="store_true", help="dense: search with FAISS instead of exactly")
    fusion = parser.add_argument_group("rrf, weighted, mrrank, routing, rerank")
    fusion.add_argument("--constant", type=float, default=60, help="rrf: 1 / (constant + rank) (default %(default)s)")
    fusion.add_argument("--weights", type=float, nargs="+", default=[], help="weighted: one weight for each run")
    fusion.add_argument(
        "--normalisation", default="min-max", choices=sorted(NORMALISATIONS), help="weighted (default %(default)s)"
    )
    fusion.add_argument("--ranker", type=Path, help="mrrank, routing: a model of `qilin-tasks mrrank`")
    fusion.add_argument("--depth", type=int, default=100, help="documents of each run that count (default %(default)s)")


def settings_of(args: argparse.Namespace, *, language: str) -> Settings:
    """The options as settings; SettingError for values out of range."""
    return Settings(
        retriever=args.retriever,
        k=args.top_k,
        language=language,
        k1=args.k1,
        b=args.b,
        workers=args.workers,
        model=args.model,
        backend=args.backend,
        max_length=args.max_length,
        batch_size=args.batch_size,
        query_prompt=args.query_prompt,
        document_prompt=args.document_prompt,
        vectors=args.vectors,
        approximate=args.approximate,
        constant=args.constant,
        weights=tuple(args.weights),
        normalisation=args.normalisation,
        ranker=args.ranker,
        depth=args.depth,
    )
