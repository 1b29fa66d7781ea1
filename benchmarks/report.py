"""Build a report of synthetic full-size results: seconds, peak memory, size of the page, and Chromium's time to sort.

Targets for 10 models x 2,932 documents: under 20 s, 2 GB, 25 MB; opens and sorts in under 2 s.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.runs import write_run

from qilin_tasks.report.build import build

CONDITIONS = ("bm25", "na", "oracle", "bert")
METRICS = (
    "rouge_l", "rouge_l_jieba", "bertscore_f1", "bertscore_precision", "bertscore_recall", "bertscore_cut_rate",
    "answer_chars", "empty_rate", "unfinished_reasoning_rate", "notes_shown", "notes_trimmed",
)  # fmt: skip


def words(rng: random.Random) -> list[str]:
    """A vocabulary of two-character words, drawn as unevenly as words are."""
    hanzi = [bytes((0xB0 + i // 94, 0xA1 + i % 94)).decode("gb2312") for i in range(2000)]
    return [rng.choice(hanzi) + rng.choice(hanzi) for _ in range(6000)]


class Writer:
    """Chinese-looking text: words by Zipf's law, so that it packs about as well as text does."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.words = words(self.rng)
        self.weights = [1 / (rank + 3) for rank in range(len(self.words))]

    def text(self, characters: int) -> str:
        drawn = self.rng.choices(self.words, self.weights, k=max(1, characters // 2))
        return "，".join("".join(drawn[i : i + 6]) for i in range(0, len(drawn), 6))


def make_runs(folder: Path, *, models: int, documents: int, conditions: int) -> None:
    """Results files of the harness's shape: notes of about 400 characters, answers of about 250."""
    writer, rng = Writer(1), random.Random(2)
    for condition in CONDITIONS[:conditions]:
        docs = [
            {
                "doc_key": key,
                "search_idx": key,
                "query": writer.text(10),
                "notes": []
                if condition == "na"
                else [
                    {"note_idx": key * 5 + n, "title": writer.text(14), "content": writer.text(400), "trimmed": False}
                    for n in range(5)
                ],
                "reference": writer.text(250),
            }
            for key in range(documents)
        ]
        for model in range(models):
            # A model takes half of its answer from the reference, as real ones share phrases with it.
            responses = [str(doc["reference"])[:120] + writer.text(130) for doc in docs]
            scores = [
                {m: round(rng.betavariate(2 + model / 10, 5), 6) if m != "answer_chars" else 250.0 for m in METRICS}
                for _ in docs
            ]
            write_run(
                folder / f"model{model}" / condition,
                model=f"model{model}",
                task=f"qilin_dqa_{condition}",
                docs=docs,
                responses=responses,
                scores=scores,
                signature=f"dqa|ctx:{condition}|data:d{condition}|n:{documents}|v:1.0",
                metadata={"context": condition},
            )


def in_chromium(page: Path) -> dict[str, float]:
    """Seconds until the samples are listed, and until they are sorted by a score."""
    from support.browser import chromium

    with chromium() as browser:
        start = time.perf_counter()
        browser.get(page.resolve().as_uri())
        browser.wait_ready()
        opened = time.perf_counter() - start
        start = time.perf_counter()
        browser.sort_by("a")
        return {"open_s": round(opened, 2), "sort_s": round(time.perf_counter() - start, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--documents", type=int, default=2932)
    parser.add_argument("--conditions", type=int, default=1, choices=range(1, 5))
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--no-browser", action="store_true")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        runs, out = Path(folder) / "runs", Path(folder) / "report"
        make_runs(runs, models=args.models, documents=args.documents, conditions=args.conditions)
        start, cpu = time.perf_counter(), time.process_time()
        built = build([runs], out, title="benchmark", resamples=args.resamples, seed=1, say=print)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        page = next(path for path in built.files if path.suffix == ".html")
        browser = {} if args.no_browser else in_chromium(page)
        print(
            json.dumps(
                {
                    "benchmark": "report",
                    "models": args.models,
                    "documents": args.documents,
                    "conditions": args.conditions,
                    "seconds": round(seconds, 1),
                    "cpu_seconds": round(cpu, 1),
                    "peak_gib": round(memory, 2),
                    "page_mb": round(page.stat().st_size / 1e6, 1),
                    **browser,
                }
            )
        )


if __name__ == "__main__":
    main()
