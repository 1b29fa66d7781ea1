"""The command that `compare --dry-run` prints for a pair, run by a shell, sends the requests that `compare` sends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.comparing import arguments, main
from support.openai_server import chat_server

from qilin_tasks.compare.dry_run import _quoted
from qilin_tasks.results.reader import find_results

KEY = "a key with $HOME and `id`, \\ and 'both'"
PROGRAM = 'qilin-tasks() { "$PYTHON" -m qilin_tasks.cli "$@"; }\n'


def shell(text: str, **environment: str) -> str:
    ran = subprocess.run(
        ["bash", "-c", PROGRAM + text],
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_printed_commands_send_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("QILIN_TEST_KEY", "first")
    models, out = tmp_path / "models.yaml", tmp_path / "with blank"
    with chat_server() as server:
        header = {"Authorization": "Bearer ${QILIN_TEST_KEY}"}
        entry: dict[str, Any] = {
            "name": "m",
            "backend": "local-chat-completions",
            "args": {
                "model": "m's $x",
                "base_url": server.url,
                "header": header,
            },
            "generation": {"temperature": 0.5, "top_p": 0.9},
            "system_instruction": 'Say "$HOME" briefly',
        }
        models.write_text(yaml.safe_dump([entry]))
        tasks = "qilin_dqa_bm25,qilin_search_listwise"
        command = [str(models), *arguments(out, tasks=tasks, extra=("--limit", "2", "--gen_kwargs", "max_gen_toks=33"))]
        assert main([*command, "--dry-run"]) == 0
        shown = capsys.readouterr().out.splitlines()
        printed = [line.strip().removeprefix("as: ") for line in shown if line.startswith("  as: ")]
        assert len(printed) == 2
        assert main(command) == 0
        ours, _ = [*server.payloads], server.payloads.clear()
        for text in printed:
            shell(text, QILIN_DATA="sample", QILIN_TEST_KEY="second")
        theirs = server.payloads
        assert server.headers["Authorization"] == "Bearer second"
    assert len(ours) == 4
    # An empty list of stops is left out by `compare` alone: to a server both say the same.
    plain = [{key: value for key, value in payload.items() if key != "stop" or value} for payload in theirs]
    assert sorted(map(json.dumps, plain)) == sorted(map(json.dumps, ours))
    results = {(r.task): r.signature for r in find_results([out])}
    again = {(r.task): r.signature for r in find_results([tmp_path / "with blank-lm_eval"])}
    assert results == again
    assert len(results) == 2


@given(st.lists(st.text("ab\"'\\$`{}! \n"), min_size=1, max_size=4))
def test_a_shell_reads_a_quoted_word_as_it_was(parts: list[str]) -> None:
    word = "${QILIN_TEST_KEY}".join(parts)
    if re.search(r"\$\{\w+\}", "".join(parts)):
        return
    read = subprocess.run(
        ["bash", "-c", f"printf %s {_quoted(word)}"],
        env={"QILIN_TEST_KEY": KEY},
        capture_output=True,
        check=True,
    ).stdout
    assert read.decode() == KEY.join(parts)
