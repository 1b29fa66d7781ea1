"""Known-item search over 798 real notes: the title asks for the content. MRR of BM25, a dense model, and their fusion.

    python benchmarks/known_item.py --shared ../shared
    python benchmarks/known_item.py --model FOLDER --backend mean-pooling    # another encoder

Notes without a title or a content are left out; equal titles share their contents (any of them is right). 95 %
intervals are bootstrap over queries. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks.results.stats import percentile_interval, resampled_means
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import load_encoder
from qilin_tasks.retrieval.fusion import reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.routing import reciprocal_rank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--model", default=".models/multilingual-e5-small", help="encoder (default %(default)s)")
    parser.add_argument("--backend", default="sentence-transformers")
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--limit", type=int, help="notes (default: all)")
    parser.add_argument("--resamples", type=int, default=10_000)
    args = parser.parse_args()
    with (args.shared / "data" / "qilin" / "notes.798.csv").open(encoding="utf-8", newline="") as file:
        rows_read = [(row["note_title"].strip(), row["note_content"].strip()) for row in csv.DictReader(file)]
    notes = [(title, content) for title, content in rows_read if title and content][: args.limit]
    contents = [content for _, content in notes]
    titles = list(dict.fromkeys(title for title, _ in notes))
    relevant = [{place for place, (title, _) in enumerate(notes) if title == asked} for asked in titles]
    encoder = load_encoder(args.model, backend=args.backend, batch_size=32, max_length=None)
    index = BM25(contents, language="zh")
    bm25 = [index.search(title, k=args.depth) for title in titles]
    dense = search_vectors(
        encoder.encode(titles, query=True), encoder.encode(contents), np.arange(len(contents)), k=args.depth
    )
    both = list(zip(bm25, dense, strict=True))
    systems: dict[str, Any] = {
        "BM25": bm25,
        "dense": dense,
        "RRF": [reciprocal_rank_fusion(pair, k=args.depth) for pair in both],
        "weighted sum (.5)": [weighted_sum(pair, weights=[0.5, 0.5], k=args.depth) for pair in both],
        "weighted sum (.8 BM25)": [weighted_sum(pair, weights=[0.8, 0.2], k=args.depth) for pair in both],
    }
    scores = {
        name: [reciprocal_rank(ranking, wanted) for ranking, wanted in zip(rankings, relevant, strict=True)]
        for name, rankings in systems.items()
    }
    resampled = resampled_means(np.array(list(scores.values())).T, resamples=args.resamples, seed=0)
    rows = []
    for column, (name, values) in enumerate(scores.items()):
        low, high = percentile_interval(resampled[:, column], units=len(titles))
        numbers = {"mrr": np.mean(values), "low": low, "high": high}
        rows.append({"system": name, **{key: round(float(value), 4) for key, value in numbers.items()}})
        print(json.dumps(rows[-1]))
    print(
        json.dumps(
            {
                "benchmark": "known_item",
                "queries": len(titles),
                "notes": len(contents),
                "encoder": encoder.signature,
                "rows": rows,
            }
        )
    )


if __name__ == "__main__":
    main()
