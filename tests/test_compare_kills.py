"""SIGKILL at random moments of a five-model comparison, then the same command again: nothing lost, nothing asked twice.

QILIN_KILLS=30 runs the full thirty; the suite runs a few, to be quick.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.comparing import arguments, main, start
from support.openai_server import ChatServer, chat_server

from qilin_tasks.harness.response_store import request_key
from qilin_tasks.results.reader import find_results, iter_samples

KILLS = int(os.environ.get("QILIN_KILLS", "3"))
MODELS = 5
CONCURRENT = 2
TASKS = "qilin_dqa_na"


def models_of(server: ChatServer) -> list[str]:
    return [
        f"local-chat-completions:m{i},base_url={server.url},num_concurrent={CONCURRENT},max_retries=2"
        for i in range(MODELS)
    ]


def outcome(out: Path) -> dict[str, Any]:
    """All that a comparison found, without times and file names."""
    return {
        f"{result.model} {result.task}": (
            dict(result.values),
            result.signature,
            [(s.key, s.responses, s.scores) for s in iter_samples(result)],
        )
        for result in find_results([out])
    }


def stored(out: Path) -> set[tuple[str, str]]:
    """(model, key) of every response on disk."""
    found: set[tuple[str, str]] = set()
    for path in out.glob("m*/responses/*.sqlite"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
        # Killed before the table was made: nothing is stored.
        with contextlib.suppress(sqlite3.OperationalError):
            found |= {(path.parts[-3], row[0]) for row in connection.execute("SELECT key FROM responses")}
        connection.close()
    return found


def key_of(payload: dict[str, Any]) -> str:
    """The stored key of what the server was asked: the harness logs a chat as JSON in a tuple."""
    generation = {"until": [], "max_gen_toks": 1024, "do_sample": False, "temperature": 0.0}
    messages = [{key: message[key] for key in ("role", "content")} for message in payload["messages"]]
    return request_key("generate_until", ([json.dumps(messages, ensure_ascii=False)], generation))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    with chat_server() as quiet:
        assert main(arguments(tmp_path / "whole", *models_of(quiet), tasks=TASKS)) == 0
        requests = sum(quiet.asked.values())
    rng = random.Random(6)
    out = tmp_path / "killed"
    with chat_server(delay=0.4) as server:
        command = arguments(out, *models_of(server), tasks=TASKS)
        kills = while_asking = 0
        twice: list[tuple[str, str]] = []
        while kills < KILLS:
            known, seen = stored(out), len(server.payloads)
            process = start(command)
            # Early kills hit the planning and the loading, later ones the asking and the writing.
            before = len(server.payloads)
            deadline = time.monotonic() + 300
            if rng.random() < 0.75:
                while len(server.payloads) == before and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
            time.sleep(rng.uniform(0, 2.5))
            if process.poll() is not None:
                break
            if rng.random() < 0.5:
                process.send_signal(signal.SIGKILL)
            else:
                _kill_a_worker(process.pid)
                process.send_signal(signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            kills += 1
            while_asking += len(server.payloads) > seen
            time.sleep(0.8)  # The workers see that their parent is gone.
            twice += [(p["model"], key_of(p)) for p in server.payloads[seen:] if (p["model"], key_of(p)) in known]
        seen, known = len(server.payloads), stored(out)
        server.delay = 0.0
        assert main(command) == 0
        twice += [(p["model"], key_of(p)) for p in server.payloads[seen:] if (p["model"], key_of(p)) in known]
        asked = Counter((p["model"], key_of(p)) for p in server.payloads)
    print(json.dumps({"kills": kills, "while_asking": while_asking, "requests": requests, "asked": asked.total()}))
    assert kills == KILLS
    assert while_asking > 0
    assert twice == []
    # The keys computed here are those of the store, so that the line above can fail.
    assert set(asked) == stored(out)
    assert outcome(out) == outcome(tmp_path / "whole")
    # Only what was in flight at a kill is asked again.
    assert asked.total() <= requests + kills * CONCURRENT


def _kill_a_worker(parent: int) -> None:
    """SIGKILL one child of the comparison, as the kernel does to a process that takes too much memory."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    for child in children.read_text().split() if children.exists() else []:
        try:
            os.kill(int(child), signal.SIGKILL)
        except ProcessLookupError:
            continue
        return
