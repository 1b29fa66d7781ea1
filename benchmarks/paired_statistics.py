"""How long 10,000 paired resamples and sign flips take over documents x models x conditions (target: under 10 s)."""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from qilin_tasks.results.stats import compare_systems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2932)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--conditions", type=int, default=4)
    parser.add_argument("--resamples", type=int, default=10_000)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    seconds = []
    for condition in range(args.conditions):
        scores = np.clip(rng.normal(0.3, 0.15, (args.documents, args.models)), 0, 1)
        start = time.perf_counter()
        tests = compare_systems(scores, resamples=args.resamples, seed=condition)
        seconds.append(time.perf_counter() - start)
        print(f"condition {condition}: {len(tests)} pairs in {seconds[-1]:.2f} s", flush=True)
    print(json.dumps({"benchmark": "paired_statistics", **vars(args), "seconds": round(sum(seconds), 2)}))


if __name__ == "__main__":
    main()
