"""A throw-away copy of the installed harness, so that a test may install task folders into it and run its command."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True)
class HarnessCopy:
    """`folder` holds a copy of the package lm_eval and goes before all else on the path of the commands run here."""

    folder: Path

    @property
    def tasks(self) -> Path:
        return self.folder / "lm_eval" / "tasks"

    def environment(self, **extra: str) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "PATH": f"{SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            **extra,
        }

    def run(self, *command: str, timeout: float = 840, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a console script of this Python against the copy; a failure shows all that the command said."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            printed, said = process.communicate(timeout=timeout)
        finally:
            # vLLM's engine is a child of the command and would outlive it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != 0:
            raise AssertionError(
                f"{' '.join(command)}: exit code {process.returncode}\n{printed[-4000:]}\n{said[-8000:]}"
            )
        return subprocess.CompletedProcess(command, 0, printed, said)


def copy_harness(folder: Path) -> HarnessCopy:
    """Copy the package lm_eval of this Python into `folder`."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or spec.origin is None:
        raise AssertionError("lm-eval is not installed: make test installs it")
    shutil.copytree(
        Path(spec.origin).parent, folder / "lm_eval", ignore=shutil.ignore_patterns("__pycache__", "qilin", "reqa")
    )
    return HarnessCopy(folder)


def read_results(output: Path) -> dict[str, Any]:
    """The one results file under the harness's `--output_path`."""
    (path,) = output.rglob("results_*.json")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def read_samples(output: Path, task: str) -> list[dict[str, Any]]:
    """The lines of a task's samples file under the harness's `--output_path`."""
    (path,) = output.rglob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
