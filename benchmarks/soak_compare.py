"""Kills, and a server that errs on a tenth of its calls: what a comparison asks twice, and what it ends up with.

`python benchmarks/soak_compare.py [--kills 30] [--models 6] [--seed 6]`: loopback only. Ends with one line of JSON;
exits with 1 where an answer that was stored is asked again, a response is lost, or a value differs from an
uninterrupted run's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.comparing import arguments, start
from support.openai_server import ChatServer, chat_server

from qilin_tasks.harness.response_store import request_key
from qilin_tasks.results.cost import cost_of
from qilin_tasks.results.reader import find_results, iter_samples

CONCURRENT = 2
TASKS = (
    "qilin_dqa_na,qilin_dqa_bm25,qilin_dqa_bert,qilin_dqa_oracle,qilin_search_listwise,qilin_recommendation_listwise"
)
FAULTS = ("error 200", "no choices", "null", "broken json", "page", "busy", "cut")
#: No more attempts than these once the kills are over: a pair of which one request erred three times fails.
ATTEMPTS = 10


def models_of(server: ChatServer, count: int) -> list[str]:
    options = f"base_url={server.url},num_concurrent={CONCURRENT},max_retries=3"
    return [f"local-chat-completions:m{i},{options}" for i in range(count)]


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


def stored(out: Path) -> Counter[tuple[str, str]]:
    """In how many tasks' stores each (model, key) is: a prompt that two tasks share is asked once for each."""
    found: Counter[tuple[str, str]] = Counter()
    for path in out.glob("m*/responses/*.sqlite"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
        # Killed before the table was made: nothing is stored.
        with contextlib.suppress(sqlite3.OperationalError):
            # Beside the answers stand their tokens, and the time of each run.
            rows = connection.execute("SELECT key FROM responses WHERE key NOT LIKE '%:%'")
            found.update((path.parts[-3], key.partition("#")[0]) for (key,) in rows)
        connection.close()
    return found


def tokens(out: Path) -> dict[str, tuple[int, int, int | None, int]]:
    """What each result's answers took, as the server counted: prompt, generated, reasoning, and of how many answers."""
    costs = {f"{result.model} {result.task}": cost_of(result) for result in find_results([out])}
    return {
        name: (cost.prompt, cost.generated, cost.reasoning, cost.counted)
        for name, cost in costs.items()
        if cost is not None
    }


def key_of(payload: dict[str, Any]) -> str:
    """The stored key of what the server was asked: the harness logs a chat as JSON in a tuple."""
    generation = {
        "until": payload.get("stop", []),
        "max_gen_toks": payload["max_tokens"],
        "do_sample": False,
        "temperature": 0.0,
    }
    messages = [{key: message[key] for key in ("role", "content")} for message in payload["messages"]]
    return request_key("generate_until", ([json.dumps(messages, ensure_ascii=False)], generation))


def _keys(payloads: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(payload["model"], key_of(payload)) for payload in payloads]


def _whole(command: list[str]) -> int:
    process = start(command)
    process.communicate()
    return int(process.returncode)


def soak(folder: Path, *, kills: int, models: int, tasks: str, delay: float, seed: int) -> dict[str, Any]:
    """Run to the end once in peace and once with kills and faults; what was seen."""
    rng = random.Random(seed)
    with chat_server(counts=True) as quiet:
        if _whole(arguments(folder / "whole", *models_of(quiet, models), tasks=tasks)) != 0:
            raise SystemExit("the uninterrupted run failed")
        requests = Counter(_keys(quiet.payloads))
    erring = random.Random(seed + 1)
    errs = [erring.choice(FAULTS) if erring.random() < 0.1 else None for _ in range(100_000)]
    out = folder / "killed"
    with chat_server(counts=True, delay=delay, fault=lambda number: errs[number % len(errs)]) as server:
        command = arguments(out, *models_of(server, models), tasks=tasks)
        done = while_asking = 0
        twice: list[tuple[str, str]] = []
        for _ in range(kills):
            known, seen = stored(out), len(server.payloads)
            process = start(command)
            # Early kills hit the planning and the loading, later ones the asking and the writing.
            end = time.monotonic() + 120
            wait = rng.random() < 0.75
            while wait and len(server.payloads) == seen and process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 2.5))
            if rng.random() < 0.5:
                _kill_a_worker(process)
            process.kill()
            process.communicate()
            done += 1
            while_asking += len(server.payloads) > seen
            time.sleep(0.8)  # The workers see that their parent is gone.
            twice += [key for key in _keys(server.payloads[seen:]) if known[key] == requests[key]]
        server.delay = 0.0
        attempts, code = 0, 1
        while code and attempts < ATTEMPTS:
            known, seen = stored(out), len(server.payloads)
            code = _whole(command)
            attempts += 1
            twice += [key for key in _keys(server.payloads[seen:]) if known[key] == requests[key]]
        asked, faults = Counter(_keys(server.payloads)), server.faults
    return {
        "kills": done,
        "while_asking": while_asking,
        "attempts_after": attempts,
        "requests": requests.total(),
        "asked": asked.total(),
        "faults": faults,
        "stored_and_asked_again": len(twice),
        "finished": code == 0,
        "keys_agree": stored(out) == requests and set(asked) == set(requests),
        "tokens_equal": code == 0 and tokens(out) == tokens(folder / "whole"),
        "values_equal": code == 0 and outcome(out) == outcome(folder / "whole"),
    }


def passed(seen: dict[str, Any]) -> bool:
    """Whether nothing was lost, paid twice, counted twice or scored although it was an error."""
    kept = seen["values_equal"] and seen["keys_agree"] and seen["tokens_equal"]
    return bool(kept and not seen["stored_and_asked_again"])


def _kill_a_worker(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL one child of the comparison, as the kernel does to a process that takes too much memory."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError):
        for child in children.read_text().split()[:1]:
            os.kill(int(child), signal.SIGKILL)


def main() -> int:
    """Run it, print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--tasks", default=TASKS)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds the server takes for an answer")
    parser.add_argument("--seed", type=int, default=6)
    args = parser.parse_args()
    os.environ["QILIN_DATA"] = "sample"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seen = soak(
            Path(folder), kills=args.kills, models=args.models, tasks=args.tasks, delay=args.delay, seed=args.seed
        )
    print(json.dumps({**seen, "seconds": round(time.monotonic() - began), "passed": passed(seen)}))
    return 0 if passed(seen) else 1


if __name__ == "__main__":
    sys.exit(main())
