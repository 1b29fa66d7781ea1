"""BM25 on several processes: the bytes of one, nothing lost when a process dies, none left when the parent does."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.retrieval import postings
from qilin_tasks.retrieval.corpus import Batch, Corpus, JsonLinesCorpus, NotesCorpus
from qilin_tasks.retrieval.corpus_bm25 import search_corpus
from qilin_tasks.retrieval.topk import TopK
from qilin_tasks.retrieval.workers import Workers, neighbours
from qilin_tasks.sources.qilin import open_qilin

QUERIES = ["苹果 苹果 梨", "旅行 攻略", "的", "", "the"]


def generated(folder: Path) -> JsonLinesCorpus:
    """Few words, so that many documents have equal scores and the order of ids decides."""
    rng = np.random.default_rng(7)
    words = np.array(["苹果", "梨", "旅行", "攻略", " the ", "的", ""])
    lines = [
        json.dumps({"id": str(3 * number), "contents": "".join(rng.choice(words, size=rng.integers(0, 9)))})
        for number in range(1_100)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(lines), "utf-8")
    return JsonLinesCorpus(folder / "corpus.jsonl")


@pytest.mark.parametrize("kind", ["sample", "generated"])
def test_any_number_of_workers_gives_the_same_bytes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus: Corpus = NotesCorpus(open_qilin("sample")) if kind == "sample" else generated(tmp_path)
    block = -(-corpus.count // 11)
    monkeypatch.setattr(postings, "BLOCK", block)
    monkeypatch.setattr(postings, "BATCH", block)
    queries = [*QUERIES, *next(corpus.batches(3)).texts.tolist()]
    results = []
    for workers in (1, 2, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        found = search_corpus(queries, corpus, language="zh", k=3, folder=folder, workers=workers)
        blocks = [path.read_bytes() for path in sorted(folder.iterdir())]
        assert len(blocks) == -(-corpus.count // block)
        results.append((found, blocks))
    assert results[1] == results[0]
    assert results[2] == results[0]
    assert sum(len(ranking) == 3 for ranking in results[0][0]) >= 3


class Deadly:
    """A corpus whose reader is killed once, on the way to its fourth document."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parent = os.getpid()

    count = 8
    fingerprint = "deadly"

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        from qilin_tasks.retrieval.texts import ListTexts

        for number in range(start, self.count):
            if number == 4 and not (self.folder / "died").exists():
                assert os.getpid() != self.parent
                (self.folder / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield Batch(np.array([number]), ListTexts(["苹果" * (number + 1)]))


def test_a_killed_worker_is_named_and_the_next_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "BLOCK", 1)
    monkeypatch.setattr(postings, "BATCH", 1)
    corpus = Deadly(tmp_path)
    with pytest.raises(DataError, match=r"one of 2 worker processes was killed.*run the same command again"):
        search_corpus(["苹果"], corpus, language="zh", k=3, folder=tmp_path, workers=2)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("block-*.npz")}
    assert kept
    found = search_corpus(["苹果"], corpus, language="zh", k=3, folder=tmp_path, workers=2)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert found == search_corpus(["苹果"], corpus, language="zh", k=3, folder=fresh)


PARENT = """
import os, time
from qilin_tasks.retrieval.workers import Workers

if __name__ == "__main__":
    with Workers(2) as workers:
        for pid in workers.run(os.getpid, [()] * 2):
            print(pid, flush=True)
        list(workers.run(time.sleep, [(600,), (600,)]))
"""


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = {int(parent.stdout.readline()), int(parent.stdout.readline())}
    parent.kill()
    parent.wait()
    parent.stdout.close()
    give_up = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < give_up:
        time.sleep(0.05)
    left = [child for child in children if Path(f"/proc/{child}").exists()]
    for child in left:
        os.kill(child, signal.SIGKILL)
    assert left == []


def test_an_error_in_a_worker_is_the_same_error_here() -> None:
    with Workers(2) as workers, pytest.raises(DataError, match=r"corpus\.jsonl: can't be read"):
        list(workers.run(_count, [(JsonLinesCorpus(Path("/nowhere/corpus.jsonl")),)]))


def _count(corpus: JsonLinesCorpus) -> int:
    return corpus.count


def test_notes_go_to_another_process_with_their_files_open_again() -> None:
    corpus = NotesCorpus(open_qilin("sample"))
    there = pickle.loads(pickle.dumps(corpus))
    assert (there.count, there.fingerprint) == (corpus.count, corpus.fingerprint)
    assert next(there.batches(5, start=3)).texts.tolist() == next(corpus.batches(5, start=3)).texts.tolist()


def test_a_number_of_workers_below_one_is_refused() -> None:
    with pytest.raises(SettingError, match="workers 0: choose a number of processes from 1"):
        Workers(0)


@given(st.sets(st.integers(0, 40)), st.integers(1, 9))
def test_jobs_are_runs_of_neighbours(numbers: set[int], longest: int) -> None:
    runs = neighbours(sorted(numbers), longest=longest)
    assert [number for run in runs for number in run] == sorted(numbers)
    assert all(run == list(range(run[0], run[0] + len(run))) and len(run) <= longest for run in runs)


@given(scores=st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0]), max_size=30), cut=st.integers(0, 30), k=st.integers(1, 5))
def test_the_best_of_parts_are_the_best_of_all(scores: list[float], cut: int, k: int) -> None:
    values, ids = np.array(scores, dtype=np.float32), np.arange(len(scores))
    whole, first = TopK(1, k=k), TopK(1, k=k)
    if scores:
        whole.add(0, values, ids)
    if len(scores[:cut]):
        first.add(0, values[:cut], ids[:cut])
    second = TopK(1, k=k, least=first.thresholds())
    kept = values[cut:] >= second.threshold(0)
    if kept.any():
        second.add(0, values[cut:][kept], ids[cut:][kept])
    first.merge(second)
    assert first.rankings() == whole.rankings()
