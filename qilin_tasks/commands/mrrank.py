"""`qilin-tasks mrrank`: trains a fusion of several runs (RankNet or routing), or runs MrRank's whole experiment."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.files import locked, write_whole
from qilin_tasks.reqa.pools import Pool, load_pool
from qilin_tasks.retrieval.mrrank import RankNet, train_ranknet
from qilin_tasks.retrieval.ranker_file import save_ranker
from qilin_tasks.retrieval.routing import Router, train_router
from qilin_tasks.retrieval.run_file import read_contexts, read_recipe
from qilin_tasks.retrieval.run_identity import check_finite, identity, system
from qilin_tasks.sources.parquet import file_digest
from qilin_tasks.sources.reqa import SETS, custom_set
from qilin_tasks.sources.run_rankings import read_trec
from qilin_tasks.sources.runs import read_qrels

TRAINERS: dict[str, Callable[..., RankNet | Router]] = {"mrrank": train_ranknet, "routing": train_router}
# The paper names BM25, MPNet and SGPT; which checkpoints it took isn't known here, so these are this project's choice.
RETRIEVERS = (
    "bm25",
    "sentence-transformers/all-mpnet-base-v2",
    "Muennighoff/SGPT-125M-weightedmean-nli-bitfit",
)
DESCRIPTION = """Two uses.

  qilin-tasks mrrank --runs A B --qrels FILE --out ranker.npz
trains on runs of a training split and its qrels; apply it with `prepare` or `retrieve` --retriever mrrank|routing
--ranker FILE --runs (the same retrievers, in the same order).

  qilin-tasks mrrank --train squad_train --test squad --out FOLDER
is MrRank's experiment: three retrievers over both pools, the ranker trained on the train split with five seeds and
applied to dev, MRR and R@1/5/10 beside each retriever, reciprocal rank fusion, an equally weighted sum and routing.
Rankings and rankers stay in FOLDER, and the same command goes on from there.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "mrrank",
        help="train MrRank's fusion of several runs, or routing between them; or run its experiment",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help="the trained ranker (.npz), or the experiment's folder")
    parser.add_argument("--depth", type=int, default=100, help="documents of each run (default %(default)s)")
    parser.add_argument("--main", help="the run or retriever whose first --depth documents are the pool (default: all)")
    runs = parser.add_argument_group("a ranker from runs")
    runs.add_argument("--kind", default="mrrank", choices=sorted(TRAINERS), help="default %(default)s")
    runs.add_argument("--runs", type=Path, nargs="+", default=[], help="two or more runs: .parquet or TREC")
    runs.add_argument("--qrels", type=Path, help="relevant documents: TREC qrels or CSV qid,pid")
    runs.add_argument("--seed", type=int, default=0, help="default %(default)s")
    whole = parser.add_argument_group("the experiment")
    whole.add_argument("--train", help=f"what the ranker learns from: a SQuAD-format file, or {', '.join(SETS)}")
    whole.add_argument("--test", help="what it is applied to: likewise")
    whole.add_argument("--language", default="en", help="of files (default %(default)s)")
    whole.add_argument(
        "--retrievers", nargs="+", default=list(RETRIEVERS), help="bm25 and encoders (default %(default)s)"
    )
    whole.add_argument(
        "--prompts",
        nargs=3,
        action="append",
        default=[],
        metavar=("ENCODER", "QUERY", "DOCUMENT"),
        help="texts before an encoder's queries and documents, as E5's 'query: ' and 'passage: '; may be repeated",
    )
    whole.add_argument("--repetitions", type=int, default=5, help="seeds of the ranker (default %(default)s)")
    whole.add_argument("--train-questions", type=int, help="learn from so many, drawn by a seed (default: all)")
    whole.add_argument("--batch-size", type=int, default=64, help="texts encoded at a time (default %(default)s)")
    whole.add_argument("--device", default="auto", help="of the encoders (default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train one ranker and say where it is, or run the experiment and show its table."""
    if bool(args.train or args.test) == bool(args.runs or args.qrels):
        raise SettingError("give either --runs A B with --qrels FILE, or --train SET with --test SET")
    if args.train or args.test:
        return _experiment(args)
    if not args.runs or args.qrels is None:
        raise SettingError("--runs and --qrels belong together: give both")
    train(args.runs, args.qrels, kind=args.kind, depth=args.depth, seed=args.seed, out=args.out, main=args.main)
    print(args.out)
    return 0


def _experiment(args: argparse.Namespace) -> int:
    from qilin_tasks.reqa.fusion_experiment import METRICS, ExperimentSettings, run_experiment

    if not args.train or not args.test:
        raise SettingError("--train and --test belong together: give both")
    if args.out.is_file():
        raise SettingError(f"--out {str(args.out)!r} is a file: the experiment writes a folder")
    settings = ExperimentSettings(
        retrievers=tuple(args.retrievers),
        main=args.main,
        depth=args.depth,
        repetitions=args.repetitions,
        train_questions=args.train_questions,
        prompts={name: (query, document) for name, query, document in args.prompts},
        batch_size=args.batch_size,
        device=args.device,
    )
    pools = {split: _pool(name, args.language) for split, name in (("train", args.train), ("test", args.test))}
    for split, pool in pools.items():
        print(f"{split}: {pool.name}, {pool.pairs} pairs, {pool.summary}")
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "results.json"
    with locked(file):
        result = run_experiment(pools["train"], pools["test"], settings, folder=args.out)
        write_whole(file, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    print("".join(f"{name:>9}" for name in (*METRICS, "runs", "±")) + "  system")
    for row in result["systems"]:
        values = "".join(f"{row['metrics'][name]:9.4f}" for name in METRICS)
        print(f"{values}{row['repetitions']:9d}{row['mrr_deviation']:9.4f}  {row['system']}")
    print(file)
    return 0


def _pool(name: str, language: str) -> Pool:
    """The pool of a set by name, else of a file."""
    if name in SETS:
        return load_pool(name)
    if not Path(name).expanduser().exists():
        raise SettingError(f"{unknown('set', name, SETS)}, or a SQuAD-format file that is there")
    return load_pool("custom", chosen=custom_set(name, language=language))


def train(
    runs: Sequence[Path], qrels: Path, *, kind: str, depth: int, seed: int, out: Path, main: str | None = None
) -> Path:
    """Trains on the queries that all runs and the qrels know (ids compared as text) and writes `out`.

    `main` names the run that bounds the pool.
    """
    if kind not in TRAINERS:
        raise unknown("kind", kind, TRAINERS)
    if len(runs) < 2:
        raise DataError(f"{len(runs)} runs: fusion needs two or more")
    options = {} if main is None else {"main": _main_number(main, runs, kind=kind)}
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
        **options,
    )
    digests = [file_digest(path).hex()[:16] for path in (*runs, qrels)]
    with locked(out):
        save_ranker(
            out, model, recipe={"seed": seed, "queries": len(shared), "trained_on": digests, "runs": identities}
        )
    return out


def _main_number(main: str, runs: Sequence[Path], *, kind: str) -> int:
    if kind != "mrrank":
        raise SettingError(f"--main {main!r} is for --kind mrrank: routing shows one retriever's ranking as it is")
    names = [str(path) for path in runs]
    if str(Path(main)) not in names:
        raise unknown("main", main, names)
    return names.index(str(Path(main)))


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
