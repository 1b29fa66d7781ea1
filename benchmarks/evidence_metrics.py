"""Every model-free metric of the families with evidence over 2,932 answers of 300 characters: seconds of each.

    python benchmarks/evidence_metrics.py [--answers 2932]

Answers and references are made as in `rouge_l.py`, with numbers, units, negations, marks `[n]` and a refusal now and
then; five notes of 300 characters are shown. Processor time of this process, after a first batch of ten loaded the
dictionaries. A metric's seconds are of a batch of its own, so that none finds work that another did; `together_seconds`
is the scorer's, where they share. Target: all of a family in under 5 s.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from itertools import accumulate
from typing import Any

from rouge_l import hanzi, text

from qilin_tasks.families import FAMILIES

CHARACTERS = 300
FAMILIES_SCORED = ("dqa_cite", "dqa_noevidence", "dqa_grid")
FACTS = (
    "门票 40 元",
    "3-5 天",
    "一万五",
    "早上 7 点",
    "2024年5月1日",
    "不用预约",
    "没有停车位",
    "提升 20%",
    "可以带宠物",
)
SETTINGS: dict[str, Any] = {
    "bertscore": "off", "bertscore_model": "none", "bertscore_layer": 1, "bertscore_device": "auto",
    "bertscore_batch_size": 1, "contexts": None, "notes": 5, "distractors": 0.6, "place": "shuffled", "seed": 0,
    "note_chars": 600, "context_chars": 4000, "answers": "all",
}  # fmt: skip


def with_facts(draw: random.Random, plain: str) -> str:
    """Four facts in the place of as many characters."""
    for _ in range(4):
        at, fact = draw.randrange(len(plain)), draw.choice(FACTS)
        plain = plain[:at] + fact + plain[at + len(fact) :]
    return plain[:CHARACTERS]


def documents(count: int, *, seed: int) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Documents of evidence with five notes, two of them cited, and an answer to each."""
    draw = random.Random(seed)
    characters = hanzi()
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(characters))))
    docs, answers = [], []
    for key in range(count):
        shown = [with_facts(draw, text(draw, characters, weights)) for _ in range(5)]
        reference = with_facts(draw, text(draw, characters, weights, shown[0]))
        answer = with_facts(draw, text(draw, characters, weights, reference))
        marked = "".join(part + draw.choice(("[1]。", "[2][7]。", "。")) for part in answer.split("。"))
        refused = key % 10 == 0
        notes = [
            {"note_idx": i, "title": one[:20], "content": one[20:], "trimmed": False} for i, one in enumerate(shown)
        ]
        docs.append(
            {
                "doc_key": key,
                "search_idx": key,
                "query": reference[:12],
                "notes": notes,
                "reference": reference,
                "cited": [] if key % 2 else [1, 4],
                "leaked": 0,
            }
        )
        answers.append(["笔记中没有提到这个问题的答案。" if refused else marked])
    return docs, answers


def seconds_of(scorer: Any, docs: list[dict[str, Any]], answers: list[list[str]]) -> dict[str, float]:
    """Processor seconds of each metric over a batch of its own, and of reading the answers."""
    found = {}
    off = scorer.unavailable()
    for name, metric in scorer.METRICS.items():
        if name in off:
            continue
        begun = time.process_time()
        batch = scorer.batch(docs, answers)
        read = time.process_time()
        values = metric.score(batch)
        found[name] = round(time.process_time() - read, 3)
        found["reading"] = round(read - begun, 3)
        assert len(values) == len(docs)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=2932)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    docs, answers = documents(options.answers, seed=options.seed)
    report = {}
    for name in FAMILIES_SCORED:
        family = FAMILIES[name]
        scorer = family.scorer(family.settings.from_metadata(SETTINGS))
        scorer.score(docs[:10], answers[:10])
        begun = time.process_time()
        scorer.score(docs, answers)
        together = round(time.process_time() - begun, 2)
        report[name] = {"together_seconds": together, "seconds": seconds_of(scorer, docs, answers)}
    lengths = [len(one) for (one,) in answers]
    print(
        json.dumps(
            {
                "benchmark": "evidence_metrics",
                "answers": len(docs),
                "mean_characters": round(sum(lengths) / len(lengths), 1),
                "families": report,
                "targets": {"together_seconds": 5},
            }
        )
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
