"""How often a known ranking is found in generated noise: by our parser, and by RankLLM's rule (all numbers in order).

    python benchmarks/ranking_noise.py [--texts 20000] [--seed 11]

RankLLM appends what isn't mentioned in shown order; here only a whole ranking in its order counts. Exits with 1 where
our parser finds less than 99.5 %. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.noisy_rankings import noisy_rankings

from qilin_tasks.parsing.rankings import parse_ranking
from qilin_tasks.parsing.simple_ranking import simple_ranking

TARGET = 0.995


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()
    began = time.process_time()
    ours = simple = 0
    for text, ids in islice(noisy_rankings(seed=args.seed), args.texts):
        ours += list(parse_ranking(text, n=len(ids)).ids) == ids
        simple += list(simple_ranking(text, n=len(ids))) == ids
    shares = {"found": round(ours / args.texts, 5), "simple_rule": round(simple / args.texts, 5)}
    seconds = round(time.process_time() - began, 1)
    print(json.dumps({"benchmark": "ranking_noise", "texts": args.texts, **shares, "cpu_seconds": seconds}))
    return 0 if shares["found"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
