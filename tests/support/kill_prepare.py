"""Runs `prepare` in children and kills them at random moments; prints the seconds of an undisturbed run, and "same".

Children are forked from a process that has imported everything, so that a kill lands in the work and not in imports.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet  # noqa: F401

from qilin_tasks.commands.prepare import prepare
from qilin_tasks.retrieval import postings
from qilin_tasks.retrieval.pipeline import Settings
from qilin_tasks.sources.qilin import open_qilin


def start(data: str, out: Path) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        prepare(open_qilin(data), config="dqa", settings=Settings(retriever="bm25", k=20), out=out)
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    data, folder, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    postings.BLOCK, postings.BATCH = 32, 8
    began = time.perf_counter()
    status = os.waitpid(start(data, folder / "undisturbed.parquet"), 0)[1]
    seconds = time.perf_counter() - began
    expected = (folder / "undisturbed.parquet").read_bytes()
    out = folder / "killed.parquet"
    generator = random.Random(7)
    killed = 0
    differences = 0
    while killed < kills and status == 0:
        child = start(data, out)
        # The first tenth of a run is spent opening files: the later moments are the interesting ones.
        time.sleep(generator.uniform(0.1, 1.0) * seconds)
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        if out.exists():
            differences += out.read_bytes() != expected
            out.unlink()
    resumed = any((folder / ".killed.parquet.work").glob("block-*.npz"))
    status |= os.waitpid(start(data, out), 0)[1]
    differences += out.read_bytes() != expected
    left = sorted(path.name for path in folder.iterdir())
    print(
        json.dumps({"status": status, "killed": killed, "differences": differences, "resumed": resumed, "left": left})
    )


if __name__ == "__main__":
    main()
