"""BM25 of 2,932 queries over a synthetic Qilin, end to end from parquet: time, throughput, peak memory.

    python benchmarks/synthetic_qilin.py --out /tmp/qilin_full
    python benchmarks/bm25_corpus.py --data /tmp/qilin_full
    python benchmarks/bm25_corpus.py --data /tmp/qilin_full --limit 200000   # for the growth of time with size

The memory is this process's peak and as many times that of the largest worker as there are workers. Ends with one
JSON line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from qilin_tasks.retrieval.corpus import Batch, NotesCorpus
from qilin_tasks.retrieval.corpus_bm25 import search_corpus
from qilin_tasks.retrieval.workers import available_cores
from qilin_tasks.sources.qilin import open_qilin


class FirstNotes(NotesCorpus):
    """The corpus cut after about `limit` notes (whole batches)."""

    def __init__(self, folder: str, limit: int | None) -> None:
        super().__init__(open_qilin(folder))
        self._limit = limit

    @property
    def count(self) -> int:
        return min(super().count, self._limit or super().count)

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        for batch in super().batches(size, start=start):
            left = self.count - start
            if left <= 0:
                return
            # The last batch may go a little beyond the limit.
            yield batch
            start += len(batch.ids)


def queries(folder: str, *, number: int) -> list[str]:
    """The queries of the answered `dqa` rows: 2 to 6 words of the same vocabulary as the notes."""
    rows = open_qilin(folder).rows("dqa", ["query", "dqa_output"])
    return [row["query"] for row in rows if row["dqa_output"] not in (None, "", "-1")][:number]


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb(workers: int) -> int:
    """At most this much at a time: this process, and every worker (of more than one) as large as the largest."""
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round((own + (child * workers if workers > 1 else 0)) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of synthetic_qilin.py")
    parser.add_argument("--limit", type=int, help="only this many notes")
    parser.add_argument("--queries", type=int, default=2932)
    parser.add_argument("--top-k", type=int, default=100)
    parser.add_argument("--workers", type=int, default=available_cores())
    args = parser.parse_args()
    corpus = FirstNotes(args.data, args.limit)
    asked = queries(args.data, number=args.queries)
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"language": "zh", "k": args.top_k, "folder": Path(folder), "workers": args.workers}
        cpu, wall = cpu_seconds(), time.perf_counter()
        found = search_corpus(asked, corpus, **arguments, progress=True)
        seconds, cpu_used = time.perf_counter() - wall, cpu_seconds() - cpu
        cpu, wall = cpu_seconds(), time.perf_counter()
        again = search_corpus(asked, corpus, **arguments)
        ranking, ranking_cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        if again != found:
            raise SystemExit("the second call ranks otherwise than the first")
        written = sum(path.stat().st_size for path in Path(folder).iterdir())
    print(
        json.dumps(
            {
                "benchmark": "bm25_corpus",
                "notes": corpus.count,
                "queries": len(asked),
                "workers": args.workers,
                "answered": sum(bool(ranking) for ranking in found),
                "rankings_sha256": hashlib.sha256(repr(found).encode()).hexdigest()[:16],
                "seconds": round(seconds, 1),
                "cpu_seconds": round(cpu_used, 1),
                "ranking_seconds": round(ranking, 1),
                "ranking_cpu_seconds": round(ranking_cpu, 1),
                "notes_per_second": round(corpus.count / seconds),
                "queries_per_second": round(len(asked) / seconds, 1),
                "peak_rss_mb": peak_mb(args.workers),
                "postings_mb": round(written / 2**20),
            }
        )
    )


if __name__ == "__main__":
    main()
