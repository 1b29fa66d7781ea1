"""How fast are the ranking metrics, beside ranx after its compilation, on the same rows? CPU seconds of one core."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from qilin_tasks.metrics.ranking import QILIN_MEASURES, score_ranking
from qilin_tasks.metrics.ranking_runs import evaluate_run

RANX = ["mrr@10", "mrr@100", "map@10", "map@100", "recall@10", "ndcg@10"]


def best_of(function, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def rows(n_rows: int, per_query: int, seed: int):
    rng = np.random.default_rng(seed)
    n_queries = n_rows // per_query
    query_ids = np.repeat(np.arange(n_queries), per_query)
    candidate_ids = (query_ids * 7919 + np.tile(np.arange(per_query) * 31, n_queries)) % 1_983_938
    scores = rng.normal(size=len(query_ids))
    relevant = rng.random(len(query_ids)) < 4 / per_query
    relevant[::per_query] |= ~np.repeat(np.add.reduceat(relevant, np.arange(0, len(relevant), per_query)) > 0, 1)
    order = rng.permutation(len(query_ids))
    return query_ids[order], candidate_ids[order], scores[order], query_ids[relevant], candidate_ids[relevant]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--per-query", type=int, default=25)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    query, candidate, score, qrel_query, qrel_candidate = rows(args.rows, args.per_query, args.seed)

    def ours(measures=QILIN_MEASURES):
        return evaluate_run(
            query_ids=query,
            candidate_ids=candidate,
            scores=score,
            qrel_query_ids=qrel_query,
            qrel_candidate_ids=qrel_candidate,
            measures=measures,
        )

    rankings = [list(range(20)) for _ in range(100_000)]
    reqa = ("mrr@20", "success@1", "success@5", "success@10")
    start = time.process_time()
    for i, ranking in enumerate(rankings):
        score_ranking(ranking, (i % 20,), measures=reqa)
    per_query_s = time.process_time() - start

    import pandas as pd
    from ranx import Qrels, Run, evaluate

    def as_text(ids):  # ranx asks for the dtype object, which pandas 3 no longer gives to strings
        return pd.Series(ids.astype(str).tolist(), dtype=object)

    run_frame = pd.DataFrame({"q": as_text(query), "d": as_text(candidate), "s": score})
    qrel_frame = pd.DataFrame({"q": as_text(qrel_query), "d": as_text(qrel_candidate), "r": 1})
    print("building ranx's run and qrels", file=sys.stderr)
    start = time.process_time()
    qrels = Qrels.from_df(qrel_frame, q_id_col="q", doc_id_col="d", score_col="r")
    run = Run.from_df(run_frame, q_id_col="q", doc_id_col="d", score_col="s")
    ranx_build_s = time.process_time() - start
    evaluate(qrels, run, RANX)  # compiles
    ranx_s = best_of(lambda: evaluate(qrels, run, RANX, make_comparable=False), args.repeats)
    theirs = evaluate(qrels, run, RANX)

    seconds = best_of(ours, args.repeats)
    means = ours().means()
    renamed = {"map@10": "map_paper@10", "map@100": "map_paper@100"}
    print(
        json.dumps(
            {
                "rows": len(query),
                "seconds": round(seconds, 3),
                "ranx_build_seconds": round(ranx_build_s, 3),
                "ranx_evaluate_seconds": round(ranx_s, 3),
                "ratio_to_ranx_evaluate": round(seconds / ranx_s, 3),
                "ratio_to_ranx_from_rows": round(seconds / (ranx_s + ranx_build_s), 4),
                "largest_difference": max(abs(theirs[m] - means[renamed.get(m, m)]) for m in RANX),
                "per_query_100k_rankings_of_20_seconds": round(per_query_s, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
