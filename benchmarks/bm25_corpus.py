"""BM25 of 2,932 queries over a synthetic Qilin, end to end from parquet: time, throughput, peak memory.

    python benchmarks/synthetic_qilin.py --out /tmp/qilin_full
    python benchmarks/bm25_corpus.py --data /tmp/qilin_full
    python benchmarks/bm25_corpus.py --data /tmp/qilin_full --limit 200000   # for the growth of time with size

Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from qilin_tasks.retrieval.corpus import Batch, NotesCorpus
from qilin_tasks.retrieval.corpus_bm25 import search_corpus
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of synthetic_qilin.py")
    parser.add_argument("--limit", type=int, help="only this many notes")
    parser.add_argument("--queries", type=int, default=2932)
    parser.add_argument("--top-k", type=int, default=100)
    args = parser.parse_args()
    corpus = FirstNotes(args.data, args.limit)
    asked = queries(args.data, number=args.queries)
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = time.process_time(), time.perf_counter()
        found = search_corpus(asked, corpus, language="zh", k=args.top_k, folder=Path(folder), progress=True)
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        again = time.perf_counter()
        search_corpus(asked, corpus, language="zh", k=args.top_k, folder=Path(folder))
        ranking = time.perf_counter() - again
        written = sum(path.stat().st_size for path in Path(folder).iterdir())
    print(
        json.dumps(
            {
                "benchmark": "bm25_corpus",
                "notes": corpus.count,
                "queries": len(asked),
                "answered": sum(bool(ranking) for ranking in found),
                "seconds": round(seconds, 1),
                "cpu_seconds": round(cpu_seconds, 1),
                "ranking_seconds": round(ranking, 1),
                "notes_per_second": round(corpus.count / seconds),
                "queries_per_second": round(len(asked) / seconds, 1),
                "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "postings_mb": round(written / 2**20),
            }
        )
    )


if __name__ == "__main__":
    main()
