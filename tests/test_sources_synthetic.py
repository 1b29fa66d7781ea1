"""The generator of full-size synthetic data keeps to the published layout and to the lengths of real notes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.sources.schema import SCHEMA

NOTES = 3_000


def generate(repo: Path, out: Path) -> QilinSource:
    script = repo / "benchmarks" / "synthetic_qilin.py"
    arguments = ["--notes", str(NOTES), "--scale", "0.02", "--shards", "3", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, check=True, cwd=repo, timeout=300
    )
    assert json.loads(done.stdout.splitlines()[-1])["notes"] == NOTES
    return open_qilin(str(out))


@pytest.fixture(scope="module")
def source(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> QilinSource:
    return generate(repo, tmp_path_factory.mktemp("synthetic") / "qilin")


def test_the_layout_is_the_published_one(source: QilinSource) -> None:
    source.check(dict.fromkeys(SCHEMA))
    for config in SCHEMA:
        names = [n for n in source.columns(config) if SCHEMA[config][n].kind in {"ids", "pairs", "details"}]
        source.check_note_ids(config, source.rows(config, names), names)


def test_notes_have_the_lengths_of_real_ones(source: QilinSource) -> None:
    notes = source.notes(range(NOTES))
    lengths = [len(note.content) for note in notes.values()]
    low, median, high = np.percentile(lengths, [10, 50, 90])
    assert 70 < low < 95 and 260 < median < 320 and 800 < high < 1_000
    assert len({note.content for note in notes.values()}) == NOTES


def test_rows_look_like_the_published_ones(source: QilinSource) -> None:
    dqa = source.rows("dqa", ["dqa_output", "bm25_results", "dpr_results"])
    assert len(dqa) == 139 and sum(row["dqa_output"] != "-1" for row in dqa) == 58  # 2 % of 6,972; 42 % answered
    assert all(len({n for n, _ in row["bm25_results"]}) == 100 for row in dqa)
    tests = source.rows("recommendation_test", ["rec_results", "rec_result_details_with_idx"])
    assert max(len(row["rec_results"]) for row in tests) == 185
    assert all(any(d["click"] for d in row["rec_result_details_with_idx"]) for row in tests)


def test_the_same_seed_gives_the_same_files(repo: Path, source: QilinSource, tmp_path: Path) -> None:
    again = generate(repo, tmp_path / "again")
    assert {c: again.fingerprint(c) for c in SCHEMA} == {c: source.fingerprint(c) for c in SCHEMA}
