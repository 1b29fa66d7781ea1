"""A model's process: a session of its own, a log without keys, gone with all it started when it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from qilin_tasks.compare.secrets import blot, names_a_secret, references, resolve, secret_values
from qilin_tasks.compare.specs import LOGGERS
from qilin_tasks.files import write_whole

#: The variables that a logger reads by itself.
_KEYS = {"hf_hub_log_args": ("HF_TOKEN", "HF_ENDPOINT"), "wandb_args": ("WANDB_API_KEY", "WANDB_BASE_URL")}
_running: set[subprocess.Popen[bytes]] = set()
_guard = threading.Lock()


def command_of(job_path: Path) -> list[str]:
    """The command line of a model's process."""
    return [sys.executable, "-m", "qilin_tasks.compare.worker", str(job_path)]


def child_environment(job: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """What a process gets on top of this one's environment: the model's own, and all that its arguments refer to.

    A Ray worker has another environment: the keys that its loggers read by themselves go along, too.
    """
    own = {key: str(value) for key, value in resolve(environment).items()}
    names = references([job["args"], *(job[name] for name in LOGGERS)])
    names += [name for logger, keys in _KEYS.items() if job[logger] for name in keys]
    return {**{name: os.environ[name] for name in names if name in os.environ}, **own}


def run_job(job: Mapping[str, Any], environment: Mapping[str, str], log_path: str) -> int:
    """Run one job to its end and return its exit code (negative: the signal that ended it).

    `environment` holds resolved values; it is never written. Also what a Ray worker calls.
    """
    names = "-".join(task["name"] for task in job["tasks"])
    job_path = Path(job["folder"]) / "jobs" / f"{names[:120]}.json"
    write_whole(job_path, json.dumps(job, ensure_ascii=False, indent=1), mode=0o600)
    hidden = sorted({*secret_values(job), *_secrets_of(environment)}, key=len, reverse=True)
    with Path(log_path).open("ab") as log:
        Path(log_path).chmod(0o600)
        devices = environment.get("CUDA_VISIBLE_DEVICES")
        on = f" on GPU {devices}" if devices is not None else ""
        log.write(f"\n=== {time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(command_of(job_path))}{on}\n".encode())
        log.flush()
        process = subprocess.Popen(
            command_of(job_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        with _guard:
            _running.add(process)
        try:
            if process.stdout is None:
                raise RuntimeError("the process was started without a pipe for its output")
            pump = threading.Thread(target=_copy, args=(process.stdout, log, hidden), daemon=True)
            pump.start()
            code = process.wait()
        finally:
            stop(process)
            with _guard:
                _running.discard(process)
        pump.join(timeout=10)
    return code


def _secrets_of(environment: Mapping[str, str]) -> list[str]:
    return [value for name, value in environment.items() if names_a_secret(name) and len(value) >= 6]


def _copy(source: IO[bytes], log: IO[bytes], hidden: Sequence[str]) -> None:
    """Copy line by line (a progress bar's \\r ends a line too), with every key blotted out."""
    rest = b""
    while part := os.read(source.fileno(), 65536):
        text = rest + part
        cut = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        text, rest = text[:cut], text[cut:]
        log.write(_blotted(text, hidden))
        log.flush()
    log.write(_blotted(rest, hidden))
    log.flush()


def _blotted(text: bytes, hidden: Sequence[str]) -> bytes:
    return blot(text.decode("utf-8", "surrogateescape"), hidden).encode("utf-8", "surrogateescape")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started in its session (vLLM's engines)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def stop_all() -> None:
    """End every process that is running; for an interrupted comparison."""
    with _guard:
        processes = list(_running)
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def last_lines(path: Path, count: int = 3) -> str:
    """The end of a log, for a message."""
    if not path.is_file():
        return ""
    text = path.read_bytes()[-20_000:].decode("utf-8", "replace").replace("\r", "\n")
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])
