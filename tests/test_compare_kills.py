"""SIGKILL at random moments beside a server that errs: the soak of benchmarks/, small.

`python benchmarks/soak_compare.py` runs the full thirty kills.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[1] / "benchmarks" / "soak_compare.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    spec = importlib.util.spec_from_file_location("soak_compare", SOAK)
    assert spec is not None
    assert spec.loader is not None
    soak = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(soak)
    seen = soak.soak(tmp_path, kills=3, models=2, tasks="qilin_dqa_na", delay=0.4, seed=6)
    assert soak.passed(seen), seen
    assert seen["kills"] == 3
    assert seen["while_asking"] > 0
    assert seen["faults"] > 0
