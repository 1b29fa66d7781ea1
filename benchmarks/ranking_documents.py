"""How long do the documents of 1,000 search and recommendation requests take from local parquet, and how much memory?

Make the data with benchmarks/synthetic_qilin.py, or give a copy of THUIR/Qilin. Each of the four tasks builds its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import yaml

from qilin_tasks import tasks_folder
from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.settings import ListwiseSettings, RankingSettings

TASKS = {
    "qilin_search_listwise": (ListwiseSettings, "search_test"),
    "qilin_search_pointwise": (RankingSettings, "search_test"),
    "qilin_recommendation_listwise": (ListwiseSettings, "recommendation_test"),
    "qilin_recommendation_pointwise": (RankingSettings, "recommendation_test"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default=os.environ.get("QILIN_DATA", "sample"), help="a folder in the published layout"
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--task", nargs="*", choices=sorted(TASKS), default=sorted(TASKS))
    args = parser.parse_args()
    defaults = yaml.safe_load((Path(tasks_folder()) / "qilin" / "_ranking_yaml").read_text())["dataset_kwargs"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu_seconds, candidates = {}, {}, {}
    for task in args.task:
        kind, config = TASKS[task]
        settings = kind.from_metadata({**defaults, "config": config, "rows": args.rows})
        start, cpu = time.perf_counter(), time.process_time()
        documents = build_ranking(settings, spec=args.data)
        seconds[task] = round(time.perf_counter() - start, 2)
        cpu_seconds[task] = round(time.process_time() - cpu, 2)
        candidates[task] = sum(len(document["candidates"]) for document in documents)
    print(
        json.dumps(
            {
                "data": args.data,
                "rows": args.rows,
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "candidates": candidates,
                "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "rss_before_mb": round(before / 1024),
            }
        )
    )


if __name__ == "__main__":
    main()
