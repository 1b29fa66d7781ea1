"""Without the hub: one line, no retries, and the cache alone from then on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.hub_server import HubServer

from qilin_tasks import hub_reach
from qilin_tasks.errors import DependencyError
from qilin_tasks.harness.length import load_model

HubAt = Callable[[str], Path]


@pytest.fixture
def nobody() -> str:
    """An address where nobody answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.slow
def test_a_dry_run_without_the_hub_says_so_in_one_line(nobody: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_ENDPOINT": nobody, "HF_HOME": str(tmp_path / "hub"), "QILIN_DATA": "sample"}
    environment |= {"HF_HUB_OFFLINE": "0", "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-m", "qilin_tasks.cli", "compare", "--dry-run", "--tasks", "qilin_dqa_na"]
    command += ["--model", "hf:someone/one", "--model", "hf:someone/two", "--metadata", "bertscore=off"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "runs")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("30 documents, 30 requests") == 2
    (line,) = [line for line in done.stderr.splitlines() if nobody in line and "can't be reached" in line]
    assert "HF_HUB_OFFLINE=1" in line and "a local folder" in line
    assert "Retry" not in done.stderr and "thrown while requesting" not in done.stderr


def test_an_unreachable_hub_is_asked_once(
    nobody: str, hub_at: HubAt, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hub_at(nobody)
    hub_reach.reach_hub(str(tmp_path))
    assert capsys.readouterr().err == ""
    for name in ("someone/one", "someone/two"):
        with pytest.raises(DependencyError, match=f"no tokenizer for '{name}'"):
            load_model(name)
    said = capsys.readouterr().err
    assert said.count("can't be reached") == 1 and "Retry" not in said
    # For the processes that are started from here.
    assert os.environ["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize("status", [None, 500, 404])
def test_a_hub_that_answers_anything_is_reached(
    hub_at: HubAt, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int | None
) -> None:
    from huggingface_hub import constants

    with HubServer("someone/data", {"main": tmp_path}) as server:
        server.fail_with(status)
        hub_at(server.url)
        for name in ("someone/data", "someone/other"):
            hub_reach.reach_hub(name)
        assert len(server.requests) == 1
    assert not constants.HF_HUB_OFFLINE
    assert capsys.readouterr().err == ""


def test_offline_asks_nobody(nobody: str, hub_at: HubAt, monkeypatch: pytest.MonkeyPatch) -> None:
    hub_at(nobody)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub_reach, "why_unreachable", lambda endpoint: pytest.fail("asked"))
    hub_reach.reach_hub("someone/one")
