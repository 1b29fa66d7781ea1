"""Build a report of synthetic full-size results: seconds, peak memory, sizes, and Chromium's times.

Targets for 10 models x 2,932 documents: under 20 s, 2 GB, 25 MB; opens and sorts in under 2 s. For 40 models x 4
conditions: opens in 2 s, 25 MB at most. An answer of 20,000 characters without a break: under 1 s.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import numpy as np

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
        self.cumulated = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def text(self, characters: int) -> str:
        drawn = self.rng.choices(self.words, cum_weights=self.cumulated, k=max(1, characters // 2))
        return "，".join("".join(drawn[i : i + 6]) for i in range(0, len(drawn), 6))


def make_runs(
    folder: Path, *, models: int, documents: int, conditions: int, note_chars: int, say: Callable[[str], None]
) -> None:
    """Results files of the harness's shape: answers of about 250 characters, half of it out of 5,000 pieces."""
    writer, rng, generator = Writer(1), random.Random(2), np.random.default_rng(3)
    pieces = [writer.text(65) for _ in range(5000)]
    for condition in CONDITIONS[:conditions]:
        docs = [
            {
                "doc_key": key,
                "search_idx": key,
                "query": writer.text(10),
                "notes": []
                if condition == "na"
                else [
                    {
                        "note_idx": key * 5 + n,
                        "title": writer.text(14),
                        "content": writer.text(note_chars),
                        "trimmed": False,
                    }
                    for n in range(5)
                ],
                "reference": writer.text(250),
            }
            for key in range(documents)
        ]
        for model in range(models):
            # A model takes half of its answer from the reference, as real ones share phrases with it.
            responses = [str(doc["reference"])[:120] + rng.choice(pieces) + rng.choice(pieces) for doc in docs]
            drawn = generator.beta(2 + model / 10, 5, size=(documents, len(METRICS))).round(6).tolist()
            scores = [
                {**dict(zip(METRICS, row, strict=True)), "answer_chars": float(len(text))}
                for row, text in zip(drawn, responses, strict=True)
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
            say(f"made {condition}, model {model + 1} of {models}")


def in_chromium(page: Path) -> dict[str, float]:
    """Seconds until the samples are listed, sorted by a score, and one of them is shown."""
    from support.browser import chromium

    with chromium() as browser:
        start = time.perf_counter()
        browser.get(page.resolve().as_uri())
        browser.wait_ready()
        opened = time.perf_counter() - start
        start = time.perf_counter()
        browser.sort_by("a")
        sorted_in = time.perf_counter() - start
        start = time.perf_counter()
        browser.click("#rows button")
        browser.wait("!document.getElementById('sample').hidden")
        return {
            "open_s": round(opened, 2),
            "sort_s": round(sorted_in, 2),
            "sample_s": round(time.perf_counter() - start, 2),
        }


#: From the choice of the marks to the frame that shows both answers unfolded, by the page's own clock: the driver's
#: protocol takes as long again.
UNFOLD = """
const done = arguments[0], answers = '.answers pre + button', start = performance.now();
const mark = document.getElementById('mark');
mark.value = 'pair';
mark.dispatchEvent(new Event('change'));
document.querySelector('#rows button').click();
const timer = setInterval(() => {
  if (document.querySelectorAll(answers).length < 2) return;
  clearInterval(timer);
  document.querySelectorAll(answers).forEach((control) => control.click());
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
}, 1);
"""


def long_answer(folder: Path) -> float:
    """Seconds until two answers of 20,000 characters without a break are compared, unfolded and drawn at 400 pixels.

    The slower of two cases: one character again and again, and characters that share nothing but chance.
    """
    from support.browser import chromium

    docs = [{"doc_key": 0, "query": "q", "notes": [], "reference": "w" * 500}]
    rng = random.Random(3)
    hanzi = [chr(0x4E00 + i) for i in range(400)]
    cases = {
        "one": ("w" * 20_000, "好" * 20_000),
        "random": ("".join(rng.choices(hanzi, k=20_000)), "".join(rng.choices(hanzi, k=20_000))),
    }
    seconds = []
    for name, answers in cases.items():
        for model, text in zip("ab", answers, strict=True):
            write_run(
                folder / name / model,
                model=model,
                task="qilin_dqa_na",
                docs=docs,
                responses=[text],
                scores=[{"rouge_l": 0.5}],
                signature="dqa|ctx:na|data:x|n:1|v:1.0",
                metadata={"context": "na"},
            )
        out = folder / f"out-{name}"
        build([folder / name], out, title="long", resamples=100, seed=1)
        with chromium(width=400) as browser:
            browser.get((out / "index.html").resolve().as_uri())
            browser.wait_ready()
            seconds.append(browser.execute_async_script(UNFOLD) / 1000)
            browser.wait("document.querySelectorAll('.answers mark').length > 1")
    return round(max(seconds), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--documents", type=int, default=2932)
    parser.add_argument("--conditions", type=int, default=1, choices=range(1, 5))
    parser.add_argument("--note-chars", type=int, default=400, help="of a note; they lie beside a large page anyway")
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--no-browser", action="store_true")
    args = parser.parse_args()
    began = time.perf_counter()

    def said(text: str) -> None:
        print(f"{time.perf_counter() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        runs, out = Path(folder) / "runs", Path(folder) / "report"
        make_runs(
            runs,
            models=args.models,
            documents=args.documents,
            conditions=args.conditions,
            note_chars=args.note_chars,
            say=said,
        )
        start, cpu = time.perf_counter(), time.process_time()
        built = build([runs], out, title="benchmark", resamples=args.resamples, seed=1, say=said)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        page = next(path for path in built.files if path.suffix == ".html")
        browser = {} if args.no_browser else in_chromium(page) | {"long_answer_s": long_answer(Path(folder) / "long")}
        beside = sum(path.stat().st_size for path in (out / "texts").glob("*.html"))
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
                    "beside_mb": round(beside / 1e6, 1),
                    **browser,
                }
            )
        )


if __name__ == "__main__":
    main()
