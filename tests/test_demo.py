"""`qilin-tasks demo` as a new user types it, where torch cannot be imported, and with a served model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.openai_server import chat_server

from qilin_tasks.cli import main

# What only the extras bring: it is not found, as where it isn't installed, in the workers too.
BLOCKER = """\
from importlib.machinery import PathFinder
EXTRAS = {"torch", "transformers", "vllm", "sentence_transformers", "bert_score", "faiss", "accelerate", "peft"}
found = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in EXTRAS else found(name, path, target)
PathFinder.find_spec = staticmethod(find_spec)
"""
COMMAND = [sys.executable, "-c", "import sys; from qilin_tasks.cli import main; sys.exit(main(sys.argv[1:]))", "demo"]


@pytest.mark.slow
def test_without_torch_baselines_make_a_table_and_a_report(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(repo)])}
    ran = subprocess.run(COMMAND, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "lead       0.0000 ± 0.0000         0.1568 ± 0.0160" in ran.stdout
    assert "reference  1.0000" in ran.stdout
    page = tmp_path / "qilin-demo" / "report" / "index.html"
    assert page.is_file() and ran.stdout.endswith(f"open {page.resolve()}\n")


@pytest.mark.slow
def test_a_served_model_stands_beside_the_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "")
    with chat_server() as server:
        base = server.url.removesuffix("/chat/completions")
        command = ["demo", "--base-url", base, "--model", "served", "--out", str(tmp_path)]
        assert main(command) == 0
        assert sum(server.asked.values()) == 120
        assert main(command) == 0
        assert sum(server.asked.values()) == 120
    assert "served" in capsys.readouterr().out


def test_half_a_server_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--model", "m", "--out", str(tmp_path / "out")]) != 0
    assert "belong together" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
