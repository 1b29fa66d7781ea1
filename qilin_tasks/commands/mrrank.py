"""`qilin-tasks mrrank`: trains a fusion of several runs (RankNet or routing) on queries with known answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.files import locked
from qilin_tasks.retrieval.mrrank import RankNet, train_ranknet
from qilin_tasks.retrieval.ranker_file import save_ranker
from qilin_tasks.retrieval.routing import Router, train_router
from qilin_tasks.retrieval.run_file import read_contexts, read_recipe
from qilin_tasks.retrieval.run_identity import check_finite, identity, system
from qilin_tasks.sources.parquet import file_digest
from qilin_tasks.sources.run_rankings import read_trec
from qilin_tasks.sources.runs import read_qrels

TRAINERS: dict[str, Callable[..., RankNet | Router]] = {"mrrank": train_ranknet, "routing": train_router}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "mrrank",
        help="train MrRank's fusion of several runs, or routing between them",
        description="Train on runs of a training split and its qrels; apply with `prepare` or `retrieve` --retriever "
        "mrrank|routing --ranker FILE --runs (the same retrievers, in the same order).",
    )
    parser.add_argument("--kind", default="mrrank", choices=sorted(TRAINERS), help="default %(default)s")
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="two or more runs: .parquet or TREC")
    parser.add_argument("--qrels", type=Path, required=True, help="relevant documents: TREC qrels or CSV qid,pid")
    parser.add_argument("--depth", type=int, default=100, help="documents of each run (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="repeat with 0 to 4 for the paper's mean of five")
    parser.add_argument("--out", type=Path, required=True, help="the trained ranker (.npz)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train one ranker and say where it is."""
    train(args.runs, args.qrels, kind=args.kind, depth=args.depth, seed=args.seed, out=args.out)
    print(args.out)
    return 0


def train(runs: Sequence[Path], qrels: Path, *, kind: str, depth: int, seed: int, out: Path) -> Path:
    """Trains on the queries that all runs and the qrels know (ids compared as text) and writes `out`."""
    if kind not in TRAINERS:
        raise unknown("kind", kind, TRAINERS)
    if len(runs) < 2:
        raise DataError(f"{len(runs)} runs: fusion needs two or more")
    read = [_read(path) for path in runs]
    rankings = [ranking for ranking, _ in read]
    identities = [{"system": system(recipe), "identity": identity(recipe)} for _, recipe in read]
    relevant: dict[str, set[str]] = {}
    stored = read_qrels(qrels)
    for query, candidate in zip(stored.query_ids.tolist(), stored.candidate_ids.tolist(), strict=True):
        relevant.setdefault(str(query), set()).add(str(candidate))
    shared = [query for query in relevant if all(query in ranking for ranking in rankings)]
    if not shared:
        raise DataError(
            f"{qrels}: none of its {len(relevant)} queries is in all runs; do run and qrels belong together?"
        )
    model = TRAINERS[kind](
        [[ranking[query] for ranking in rankings] for query in shared],
        [relevant[query] for query in shared],
        depth=depth,
        seed=seed,
    )
    digests = [file_digest(path).hex()[:16] for path in (*runs, qrels)]
    with locked(out):
        save_ranker(
            out, model, recipe={"seed": seed, "queries": len(shared), "trained_on": digests, "runs": identities}
        )
    return out


def _read(path: Path) -> tuple[dict[str, list[tuple[str, float]]], dict[str, Any]]:
    found: Any
    if path.suffix == ".parquet":
        recipe = read_recipe(path)
        found = read_contexts(path, config=recipe["config"], fingerprint=recipe["corpus_fingerprint"])
    else:
        found, recipe = read_trec(path)
    texts = {str(query): [(str(name), score) for name, score in ranking] for query, ranking in found.items()}
    for query, ranking in texts.items():
        check_finite(ranking, query=query, recipe=recipe)
    return texts, recipe
