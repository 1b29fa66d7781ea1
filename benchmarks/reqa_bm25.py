"""BM25 alone over the whole pool, by ReQA's official ranks: MRR, R@1, R@5, R@10, document MRR.

    python benchmarks/reqa_bm25.py --data ../shared/data --set xquad_en

Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="xquad_en")
    parser.add_argument("--data", default=None, help="as REQA_DATA: sample, hub or a folder")
    parser.add_argument("--k", type=int, default=20, help="depth of the candidate recall")
    arguments = parser.parse_args()

    import numpy as np

    from qilin_tasks.reqa.pools import load_pool
    from qilin_tasks.reqa.ranks import best_rank, document_scores, rank_values
    from qilin_tasks.retrieval.bm25 import BM25

    start = time.perf_counter()
    pool = load_pool(arguments.set, spec=arguments.data)
    built = time.perf_counter()
    index = BM25(pool.candidates, language=pool.language)
    owners = np.array(pool.owners)
    rows = []
    for question in pool.questions:
        scores = index.scores(question.text)
        rank = best_rank(scores, question.gold)
        row = rank_values(rank, best_rank(document_scores(scores, owners), question.documents))
        rows.append({**row, f"candidate_recall@{arguments.k}": float(rank <= arguments.k)})
    report = {
        "set": arguments.set,
        "candidates": len(pool.candidates),
        "pairs": pool.pairs,
        "questions": len(rows),
        **{name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]},
        "pool_seconds": round(built - start, 2),
        "search_seconds": round(time.perf_counter() - built, 2),
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
