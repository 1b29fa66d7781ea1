"""Does a learned fusion of two retrievers beat both, and simple fusion? A ReQA set, cross-validated by paragraph.

    python benchmarks/mrrank.py --set xquad_en --data ../shared/data --model .models/multilingual-e5-small

Every distinct question asks the whole pool of sentences; BM25 and a dense encoder rank it, fusions read the first
`--depth` of both. RankNet, the router and the tuned weight are fitted on four fifths of the paragraphs and applied to
the rest; the learned systems are repeated with `--repetitions` seeds (folds and training) and averaged question by
question. Intervals are 95 % paired bootstrap over paragraphs. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from paired_rows import PairedRows, Values

from qilin_tasks.reqa.pools import Pool, load_pool
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import load_encoder
from qilin_tasks.retrieval.fusion import reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.mrrank import train_ranknet
from qilin_tasks.retrieval.routing import reciprocal_rank, train_router

Ranking = list[tuple[Any, float]]
#: Weights of BM25 that the tuned sum chooses from.
WEIGHTS = tuple(number / 20 for number in range(1, 20))
TRAINERS: dict[str, Callable[..., Any]] = {"routing": train_router, "RankNet": train_ranknet}
TUNED = "weighted sum (tuned)"
TARGET = "RankNet"


def first_paragraphs(pool: Pool, number: int) -> Pool:
    """The pool of a set's first paragraphs; questions with an answer sentence behind them are left out."""
    candidates = [text for text, owner in zip(pool.candidates, pool.owners, strict=True) if owner < number]
    return replace(
        pool,
        candidates=tuple(candidates),
        owners=pool.owners[: len(candidates)],
        questions=tuple(question for question in pool.questions if max(question.documents) < number),
    )


def rankings(pool: Pool, args: argparse.Namespace) -> tuple[list[tuple[Ranking, Ranking]], str]:
    """Both retrievers' rankings of the whole pool for every question, and the encoder's signature."""
    size = len(pool.candidates)
    index = BM25(list(pool.candidates), language=pool.language)
    encoder = load_encoder(args.model, backend=args.backend, batch_size=64, max_length=None)
    questions = [question.text for question in pool.questions]
    queries, vectors = encoder.encode(questions, query=True), encoder.encode(pool.candidates)
    dense = search_vectors(queries, vectors, np.arange(size), k=size)
    return list(zip([index.search(text, k=size) for text in questions], dense, strict=True)), encoder.signature


def learned_values(
    pairs: Sequence[Sequence[Ranking]],
    relevant: Sequence[set[int]],
    owners: Sequence[int],
    sums: Mapping[Any, Values],
    *,
    depth: int,
    folds: int,
    seed: int,
) -> dict[str, Values]:
    """Reciprocal ranks of the systems that learn something, each question answered by what never saw its paragraph."""
    order = np.random.default_rng(seed).permutation(max(owners) + 1)
    fold = np.argsort(order)[np.array(owners)] % folds
    values = {name: np.zeros(len(pairs)) for name in (TUNED, *TRAINERS)}
    for held_out in range(folds):
        train, test = np.flatnonzero(fold != held_out).tolist(), np.flatnonzero(fold == held_out).tolist()
        chosen = max(sums, key=lambda weight: sums[weight][train].mean())
        values[TUNED][test] = sums[chosen][test]
        for name, trainer in TRAINERS.items():
            model = trainer([pairs[i] for i in train], [relevant[i] for i in train], depth=depth, seed=seed)
            for i in test:
                values[name][i] = reciprocal_rank(model.rank(pairs[i], k=2 * depth), relevant[i])
    return values


def rows_of(systems: dict[str, Values], owners: Sequence[int], *, resamples: int) -> list[dict[str, Any]]:
    """Each system's MRR, and RankNet's minus it, with 95 % intervals."""
    paired = PairedRows(systems, resamples=resamples, clusters=owners)
    rows = []
    for name in paired.names:
        row: dict[str, Any] = {"system": name, **paired.mean(name, "mrr")}
        if name != TARGET:
            minus = paired.difference(TARGET, name)
            row |= {"ranknet_minus": minus["minus"], "minus_low": minus["low"], "minus_high": minus["high"]}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="xquad_en", help="a ReQA set (default %(default)s)")
    parser.add_argument("--data", default="../shared/data", help="what REQA_DATA would say (default %(default)s)")
    parser.add_argument("--model", default=".models/multilingual-e5-small", help="encoder (default %(default)s)")
    parser.add_argument("--backend", default="sentence-transformers")
    parser.add_argument("--paragraphs", type=int, help="read the first of them only (default: all)")
    parser.add_argument("--depth", type=int, default=50, help="sentences of each run (default %(default)s)")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    args = parser.parse_args()
    began = time.perf_counter()
    torch.set_num_threads(1)  # RankNet's tensors are small: a second thread only waits.
    pool = load_pool(args.set, spec=args.data)
    if args.paragraphs is not None:
        pool = first_paragraphs(pool, args.paragraphs)
    pairs, signature = rankings(pool, args)
    relevant = [set(question.gold) for question in pool.questions]
    owners = [question.paragraph for question in pool.questions]
    depth = args.depth
    cut = [[ranking[:depth] for ranking in both] for both in pairs]

    def rr(results: Sequence[Ranking]) -> Values:
        return np.array([reciprocal_rank(ranking, wanted) for ranking, wanted in zip(results, relevant, strict=True)])

    sums = {w: rr([weighted_sum(both, weights=[w, 1 - w], k=2 * depth) for both in cut]) for w in WEIGHTS}
    systems = {
        "BM25": rr([bm25 for bm25, _ in pairs]),
        "dense": rr([dense for _, dense in pairs]),
        "RRF (60)": rr([reciprocal_rank_fusion(both, k=2 * depth) for both in cut]),
        "weighted sum (.5)": sums[0.5],
    }
    runs = [
        learned_values(pairs, relevant, owners, sums, depth=depth, folds=args.folds, seed=seed)
        for seed in range(args.repetitions)
    ]
    systems |= {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}
    rows = rows_of(systems, owners, resamples=args.resamples)
    for row in rows:
        print(json.dumps(row))
    print(
        json.dumps(
            {
                "benchmark": "mrrank",
                "set": args.set,
                "questions": len(pool.questions),
                "pool": len(pool.candidates),
                "paragraphs": len(set(owners)),
                "encoder": signature,
                "rows": rows,
                "seeds": {name: [round(float(run[name].mean()), 4) for run in runs] for name in runs[0]},
                "seconds": round(time.perf_counter() - began, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
