"""A language model as retriever, beside BM25 and E5 on the same questions, and as the third voice of a fusion.

    python benchmarks/lm_retriever.py --set xquad_zh --data ../shared/data --models gemma-3-270m --questions 200

The pool is the set's whole; the first `--questions` questions ask it. A model answers in up to three `--ways`, each a
task of the set: `likelihood` and `listwise` order the first `--candidates` of RRF over BM25 and the encoder, `written`
writes a sentence that BM25 looks up in the pool. Their reciprocal ranks are the tasks' own, 0 where no answer sentence
is among the candidates. The fusions then read BM25, the encoder and the first model's likelihoods: RankNet and a tuned
weighted sum over two retrievers and over three, cross-validated by paragraph. Intervals are 95 % paired bootstrap over
paragraphs. What was asked is kept under --work, so the same call goes on. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mrrank import TUNED, Ranking, Values, learned_values, rankings
from paired_rows import PairedRows
from real_models import ENCODER, call, language_model, write_models

from qilin_tasks.reqa.pools import Pool, load_pool
from qilin_tasks.results.reader import find_results, iter_samples
from qilin_tasks.retrieval.fusion import reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.routing import reciprocal_rank
from qilin_tasks.text.notes import one_line

MODELS: dict[str, dict[str, Any]] = {
    "gemma-3-270m": language_model("gemma-3-270m", backend="qilin-vllm", until=["\n"]),
    "SmolLM2-135M-Instruct": language_model("SmolLM2-135M-Instruct", backend="qilin-vllm", until=["\n"]),
}
#: Way -> the task's ending.
WAYS = {"likelihood": "_likelihood", "listwise": "", "written": "_generate"}
#: Long enough for every sentence of the sets: a cut one could not be found in the pool again.
CHARS = 4000
STEP = 10
#: The row of what the models are given to order.
FIRST = "RRF, candidates"


def ask(work: Path, args: argparse.Namespace) -> None:
    """Every model in every way, over the first questions of the set."""
    models = work / "models.yaml"
    write_models(models, {name: MODELS[name] for name in args.models})
    tasks = ",".join(f"reqa_{args.set}{WAYS[way]}" for way in args.ways)
    metadata = {"first_stage": "rrf", "top_k": args.candidates, "candidate_chars": CHARS, "dense_model": args.encoder}
    common = ("--tasks", tasks, "--metadata", json.dumps(metadata), "--limit", str(args.questions))
    call("compare", str(models), *common, "--out", str(work / "runs"), REQA_DATA=args.data)


def read(work: Path, args: argparse.Namespace, pool: Pool) -> tuple[dict[str, Values], list[Ranking]]:
    """Reciprocal ranks by system, a value a question, and the first model's likelihood rankings."""
    keys = [question.key for question in pool.questions]
    positions = {one_line(text): position for position, text in enumerate(pool.candidates)}
    way_of = {f"reqa_{args.set}{ending}": way for way, ending in WAYS.items()}
    values: dict[str, Values] = {}
    likely: list[Ranking] = []
    for result in find_results([work / "runs"]):
        samples = {str(sample.doc["doc_key"]): sample for sample in iter_samples(result)}
        asked = [samples[key] for key in keys]
        way = way_of[result.task]
        values[f"{result.model}, {way}"] = np.array([sample.scores["mrr"] for sample in asked])
        if way == "listwise":
            repaired = np.array([sample.scores["mrr_repaired"] for sample in asked])
            values[f"{result.model}, {way}, repaired"] = repaired
        if "first_stage" in asked[0].doc:
            firsts = [(sample.doc["first_stage"], set(sample.doc["relevant"])) for sample in asked]
            values[FIRST] = np.array([reciprocal_rank([(i, 0.0) for i in ids], wanted) for ids, wanted in firsts])
        if way == "likelihood" and result.model == args.models[0]:
            for sample in asked:
                scores = [float(response[0]) for response in _pairs(sample.responses)]
                named = [positions[text] for text in sample.doc["candidates"]]
                likely.append(sorted(zip(named, scores, strict=True), key=lambda pair: -pair[1]))
    return values, likely


def _pairs(responses: Sequence[Any]) -> list[Any]:
    """(log-likelihood, greedy) of each candidate, however the harness's version nests its lists of repeats."""
    return [each[0] if isinstance(each[0], (list, tuple)) else each for each in responses]


def fused(
    runs: Mapping[str, Sequence[Sequence[Ranking]]], pool: Pool, args: argparse.Namespace
) -> dict[str, dict[int, Values]]:
    """Reciprocal ranks of the learned fusions by name and seed."""
    relevant = [set(question.gold) for question in pool.questions]
    owners = [question.paragraph for question in pool.questions]
    found: dict[str, dict[int, Values]] = {}
    for label, lists in runs.items():
        number, most = len(lists[0]), len(pool.candidates)
        weights = [w for w in itertools.product(range(1, STEP), repeat=number) if sum(w) == STEP]
        sums = {
            weight: np.array(
                [
                    reciprocal_rank(weighted_sum(each, weights=[w / STEP for w in weight], k=most), wanted)
                    for each, wanted in zip(lists, relevant, strict=True)
                ]
            )
            for weight in weights
        }
        for seed in range(args.repetitions):
            learned = learned_values(lists, relevant, owners, sums, depth=args.depth, folds=args.folds, seed=seed)
            for name in (TUNED, "RankNet"):
                found.setdefault(f"{name} of {label}", {})[seed] = learned[name]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="xquad_zh", help="a ReQA set (default %(default)s)")
    parser.add_argument("--data", default="../shared/data", help="what REQA_DATA would say (default %(default)s)")
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=["gemma-3-270m"])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--encoder", default=ENCODER, help="default: %(default)s")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--depth", type=int, default=50, help="sentences of BM25's and E5's runs that a fusion reads")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--work", type=Path, default=Path(".results/lm_retriever"), help="default: %(default)s")
    args = parser.parse_args()
    args.data = str(Path(args.data).resolve())
    args.encoder = str(Path(args.encoder).resolve())
    torch.set_num_threads(1)  # RankNet's tensors are small: a second thread only waits.
    work = args.work.resolve() / f"{args.set}-{args.questions}-{args.candidates}"
    work.mkdir(parents=True, exist_ok=True)
    ask(work, args)

    pool = load_pool(args.set, spec=args.data)
    pool = replace(pool, questions=pool.questions[: args.questions])
    values, likely = read(work, args, pool)
    args.model, args.backend = args.encoder, "sentence-transformers"
    pairs, signature = rankings(pool, args)
    cut = [[ranking[: args.depth] for ranking in both] for both in pairs]
    relevant = [set(question.gold) for question in pool.questions]
    owners = [question.paragraph for question in pool.questions]

    def rr(results: Sequence[Ranking]) -> Values:
        return np.array([reciprocal_rank(ranking, wanted) for ranking, wanted in zip(results, relevant, strict=True)])

    merged = [reciprocal_rank_fusion(both, k=2 * args.depth) for both in cut]
    systems: dict[str, Values] = {
        "BM25": rr([bm25 for bm25, _ in pairs]),
        "dense": rr([dense for _, dense in pairs]),
        "RRF": rr(merged),
        **dict(sorted(values.items(), key=lambda pair: pair[0] != FIRST)),
    }
    differences = [(f"{args.models[0]}, likelihood", FIRST), (f"{args.models[0]}, likelihood", "dense")]
    seeds: dict[str, list[float]] = {}
    if likely:
        three = [[*both, ranking] for both, ranking in zip(cut, likely, strict=True)]
        of_two, of_three = f"{TUNED} of two", f"{TUNED} of three"
        for name, by_seed in fused({"two": cut, "three": three}, pool, args).items():
            systems[name] = np.mean(list(by_seed.values()), axis=0)
            seeds[name] = [round(float(column.mean()), 4) for column in by_seed.values()]
        differences += [("RankNet of three", "RankNet of two"), (of_three, of_two), ("RankNet of three", of_three)]
        differences += [("RankNet of three", "RRF"), ("RankNet of three", "dense")]

    paired = PairedRows(systems, resamples=args.resamples, clusters=owners)
    rows = [{"system": name, **paired.mean(name, "mrr")} for name in paired.names]
    told = [
        {"first": first, "second": second, **paired.difference(first, second)}
        for first, second in differences
        if first in systems and second in systems
    ]
    result = {
        "benchmark": "lm_retriever",
        "set": args.set,
        "questions": len(pool.questions),
        "pool": len(pool.candidates),
        "paragraphs": paired.units,
        "candidates": args.candidates,
        "encoder": signature,
        "rows": rows,
        "seeds": seeds,
        "differences": told,
    }
    for row in [*rows, *told]:
        print(json.dumps(row, ensure_ascii=False))
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
