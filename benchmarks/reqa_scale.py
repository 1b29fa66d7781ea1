"""Pool building at the size of SQuAD train, and scoring of 100,000 rankings of 20 candidates: CPU seconds and memory.

    python benchmarks/reqa_scale.py --data ../shared/data

The paragraphs are XQuAD-en's over and over, each with a numbered first sentence, so that none is a duplicate; targets:
60 s and 1 GB for the pool, 2 s for the rankings. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="as REQA_DATA: a folder, or hub")
    parser.add_argument("--paragraphs", type=int, default=18_896, help="SQuAD v1.1 train has 18,896")
    parser.add_argument("--rankings", type=int, default=100_000)
    arguments = parser.parse_args()

    from qilin_tasks.reqa.pools import build_pool
    from qilin_tasks.reqa.rankings import Judged, score_rankings
    from qilin_tasks.sources.reqa import read_set
    from qilin_tasks.sources.squad import Answer, Paragraph, Question

    real = read_set("xquad_en", spec=arguments.data)
    assert isinstance(real, list)
    paragraphs = []
    for number in range(arguments.paragraphs):
        source = real[number % len(real)]
        head = f"This is paragraph {number}. "
        questions = tuple(
            Question(
                f"{number}-{q.id}",
                f"{q.text} ({number})",
                tuple(Answer(a.text, a.start + len(head)) for a in q.answers),
            )
            for q in source.questions
        )
        paragraphs.append(Paragraph(source.title, head + source.text, questions))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    pool = build_pool(paragraphs, name="scale", language="en", strict=True)
    pool_seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    chance = random.Random(0)
    ids = list(range(1, 21))
    rankings = [chance.sample(ids, 20) for _ in range(arguments.rankings)]
    judged = [
        Judged([chance.randint(1, 20)], [chance.randrange(240) for _ in ids], [chance.randrange(240)]) for _ in rankings
    ]
    start = time.process_time()
    rows = score_rankings(rankings, judged)
    report = {
        "sentences": len(pool.candidates),
        "questions": sum(len(paragraph.questions) for paragraph in paragraphs),
        "pool_cpu_seconds": round(pool_seconds, 2),
        "peak_mb": round(peak / 1024),
        "input_mb": round(before / 1024),
        "rankings": len(rows),
        "scoring_cpu_seconds": round(time.process_time() - start, 2),
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
