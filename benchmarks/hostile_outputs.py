"""Generated hostile outputs through the scorer of every family: a value in its range for each, never a crash.

    python benchmarks/hostile_outputs.py --outputs 10000 [--kept families.jsonl]

Documents are those of the embedded samples. Log-likelihoods are huge, tiny, equal and infinite; what is no number must
be refused. Ends with one JSON line; seconds are processor time. `--kept` holds a line for each family that is through:
the same command goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.update(QILIN_DATA="sample", REQA_DATA="sample")
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "tests")]

from qilin_tasks.errors import DataError  # noqa: E402
from qilin_tasks.families import FAMILIES  # noqa: E402

NUMBERS = (0.0, -0.0, -1e308, 1e308, -1e-308, -math.inf, math.inf, -1.0)
#: The base file of each family and what a task's own YAML adds to it.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "dqa": ("qilin/_dqa_yaml", {"context": "bm25", "bertscore": "off"}),
    "dqa_cite": ("qilin/_dqa_cite_yaml", {"bertscore": "off"}),
    "dqa_noevidence": ("qilin/_dqa_noevidence_yaml", {"bertscore": "off"}),
    "dqa_grid": ("qilin/_dqa_grid_yaml", {"bertscore": "off"}),
    "qilin-listwise": ("qilin/_ranking_yaml", {"config": "search_test"}),
    "qilin-pointwise": ("qilin/_ranking_yaml", {"config": "search_test"}),
    "reqa": ("reqa/_reqa_listwise_yaml", {"set": "xquad_zh"}),
    "reqa_likelihood": ("reqa/_reqa_likelihood_yaml", {"set": "xquad_zh"}),
    "reqa_generate": ("reqa/_reqa_generate_yaml", {"set": "xquad_zh"}),
    "reqa_reader": (
        "reqa/_reqa_reader_yaml",
        {"set": "xquad_zh", "context": "bm25", "bertscore": "off", "meteor": "off"},
    ),
}


def run(name: str, outputs: list[str | None]) -> dict[str, Any]:
    """Scores all outputs as answers to the family's documents in turn."""
    from support.evaluation import defaults

    family = FAMILIES[name]
    base, own = SETTINGS[name]
    settings = family.settings.from_metadata({**defaults(base), **own})
    scorer, asking = family.scorer(settings), family.asking(settings)
    docs = list(family.load(settings))
    asked = [len(asking.requests(doc, ["p"] * len(asking.views(doc)), ["yes", "no"])) for doc in docs]
    start, scored, refused = time.process_time(), 0, 0
    if asking.kind == "loglikelihood":
        for number in range(0, len(outputs), len(docs)):
            values = cycle((*NUMBERS, float(number)))
            rows = scorer.score(docs, [[(value, False) for value in islice(values, count)] for count in asked])
            scored += check(rows, scorer.METRICS)
        try:
            scorer.score(docs[:1], [[(math.nan, False)] * asked[0]])
        except DataError:
            refused = 1
    else:
        stream = iter(outputs)
        places = cycle(range(len(docs)))
        # A document is asked once in a batch, as in a run.
        while batch := [(docs[i], list(islice(stream, asked[i]))) for i in islice(places, min(512, len(docs)))]:
            full = [(doc, answers) for doc, answers in batch if len(answers) == asked[docs.index(doc)]]
            if not full:
                break
            scored += check(scorer.score([doc for doc, _ in full], [answers for _, answers in full]), scorer.METRICS)
            print(f"\r{name}: {scored} documents", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    return {"documents": scored, "nan_refused": refused, "seconds": round(time.process_time() - start, 1)}


def check(rows: list[dict[str, float]], table: Any) -> int:
    """Every value is finite and in the range of its row; how many documents there were."""
    for row in rows:
        for name, value in row.items():
            high = math.inf if table[name].high is None else table[name].high + 1e-9
            if not (math.isfinite(value) and table[name].low <= value <= high):
                raise AssertionError(f"{name}: {value}")
    return len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--families", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--kept", type=Path, help="JSON lines of the families that are through, and of those to come")
    arguments = parser.parse_args()
    from support.hostile import hostile_outputs

    outputs = list(hostile_outputs(arguments.outputs, seed=arguments.seed))
    # Another number of outputs or another seed is another run.
    this = {"outputs": arguments.outputs, "seed": arguments.seed}
    lines = (
        arguments.kept.read_text(encoding="utf-8").splitlines() if arguments.kept and arguments.kept.exists() else []
    )
    kept = [row for row in map(json.loads, lines) if row["run"] == this]
    report = {row["family"]: row["report"] for row in kept}
    for name in arguments.families:
        if name not in report:
            report[name] = run(name, outputs)
            if arguments.kept:
                with arguments.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"run": this, "family": name, "report": report[name]}) + "\n")
    print(json.dumps({"outputs": arguments.outputs, "seed": arguments.seed, "families": report}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
