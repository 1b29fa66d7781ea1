"""BM25 beside Anserini itself: the same notes, the same queries, two threads each, one after the other in one run.

    python benchmarks/synthetic_qilin.py --out /tmp/qilin_full
    pip download --no-deps pyserini==0.22.1 && unzip pyserini-0.22.1-*.whl '*.jar'    # runs on Java 11 and later
    python benchmarks/bm25_anserini.py --data /tmp/qilin_full --jar pyserini/resources/jars/anserini-0.22.1-fatjar.jar

Anserini's time is that of its index and search programs, both started from the shell as its users do; writing its JSON
lines is not counted. Ours is from the parquet files to the rankings. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from bm25_corpus import FirstNotes, cpu_seconds, peak_mb, queries

from qilin_tasks.retrieval.corpus_bm25 import search_corpus
from qilin_tasks.sources.runs import read_run


def write_collection(corpus: FirstNotes, folder: Path) -> None:
    """The notes as Anserini's JSON collection, in two files so that two threads have work."""
    files = [(folder / f"{part}.jsonl").open("w", encoding="utf-8") for part in range(2)]
    for number, batch in enumerate(corpus.batches(4096)):
        for identifier, text in zip(batch.ids.tolist(), batch.texts.tolist(), strict=True):
            files[number % 2].write(json.dumps({"id": str(identifier), "contents": text}) + "\n")
    for file in files:
        file.close()


def java(jar: Path, program: str, *arguments: str) -> float:
    """Seconds that an Anserini program took."""
    began = time.perf_counter()
    command = ["java", "-cp", str(jar), f"io.anserini.{program}", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of synthetic_qilin.py")
    parser.add_argument("--jar", type=Path, required=True, help="Anserini's fatjar")
    parser.add_argument("--limit", type=int, help="only this many notes")
    parser.add_argument("--top-k", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    corpus, asked = FirstNotes(args.data, args.limit), queries(args.data, number=2932)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("collection", "ours"):
            (folder / name).mkdir()

        began, cpu = time.perf_counter(), cpu_seconds()
        found = search_corpus(
            asked, corpus, language="zh", k=args.top_k, folder=folder / "ours", workers=args.workers, progress=True
        )
        ours, ours_cpu = time.perf_counter() - began, cpu_seconds() - cpu
        peak = peak_mb(args.workers)

        write_collection(corpus, folder / "collection")
        (folder / "topics.tsv").write_text(
            "".join(f"{n}\t{' '.join(query.split())}\n" for n, query in enumerate(asked)), "utf-8"
        )
        index = java(
            args.jar, "index.IndexCollection", "-collection", "JsonCollection", "-input", str(folder / "collection"),
            "-index", str(folder / "index"), "-generator", "DefaultLuceneDocumentGenerator", "-language", "zh",
            "-threads", "2",
        )  # fmt: skip
        search = java(
            args.jar, "search.SearchCollection", "-index", str(folder / "index"), "-topics",
            str(folder / "topics.tsv"), "-topicreader", "TsvString", "-output", str(folder / "run.trec"),
            "-bm25", "-hits", str(args.top_k), "-language", "zh", "-parallelism", "2",
        )  # fmt: skip
        theirs: dict[int, list[int]] = {}
        run = read_run(folder / "run.trec")
        for query, note in zip(run.query_ids.tolist(), run.candidate_ids.tolist(), strict=True):
            theirs.setdefault(int(query), []).append(int(note))
    first = [ranking[0][0] == theirs[n][0] for n, ranking in enumerate(found) if ranking]
    five = [[note for note, _ in ranking[:5]] == theirs[n][:5] for n, ranking in enumerate(found) if ranking]
    print(
        json.dumps(
            {
                "benchmark": "bm25_anserini",
                "notes": corpus.count,
                "queries": len(asked),
                "workers": args.workers,
                "seconds": round(ours, 1),
                "cpu_seconds": round(ours_cpu, 1),
                "peak_rss_mb": peak,
                "anserini_index_seconds": round(index, 1),
                "anserini_search_seconds": round(search, 1),
                "anserini_peak_rss_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
                "share_of_anserini": round(ours / (index + search), 3),
                "first_equal": round(sum(first) / len(first), 4),
                "five_equal": round(sum(five) / len(five), 4),
            }
        )
    )


if __name__ == "__main__":
    main()
