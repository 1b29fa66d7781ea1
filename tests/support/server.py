"""A real `vllm serve` on a free port of the loopback interface."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

READY_SECONDS = 600
STOP_SECONDS = 20


@dataclass(frozen=True)
class Server:
    """`url` ends in /v1; `model` is the served name and the folder of the tokenizer; `log` is what the server says."""

    url: str
    model: str
    log: Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(model: Path, *, log: Path, max_model_len: int) -> Iterator[Server]:
    """Start the server, wait until it answers, and end its whole process group afterwards."""
    port = free_port()
    command = [
        str(Path(sys.executable).parent / "vllm"), "serve", str(model), "--dtype", "float32", "--enforce-eager",
        "--max-model-len", str(max_model_len), "--host", "127.0.0.1", "--port", str(port),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "NO_PROXY": "127.0.0.1",
    }
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_ready(process, f"http://127.0.0.1:{port}/health", log=log)
        yield Server(url=f"http://127.0.0.1:{port}/v1", model=str(model), log=log)
    finally:
        stop(process)


def wait_until_ready(process: subprocess.Popen[bytes], url: str, *, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    state = "is not ready" if process.poll() is None else f"ended with {process.returncode}"
    raise AssertionError(f"vllm serve {state}; the end of {log}:\n{log.read_text(encoding='utf-8')[-8000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """The engine is a child of the server: the signal goes to their process group."""
    for name in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, name)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=STOP_SECONDS)
    process.wait()
