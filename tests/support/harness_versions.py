"""Other releases of the harness for a test: only their own files, every other package is the test run's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def other_release(version: str, folder: Path) -> Path:
    """A folder for PYTHONPATH that holds lm-eval `version`; skips the test where the index can't be reached."""
    done = folder / "complete"
    if not done.exists():
        wanted = ["--no-deps", "--quiet", "--disable-pip-version-check", "--target", str(folder), f"lm-eval=={version}"]
        command = [sys.executable, "-m", "pip", "install", *wanted]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if ran.returncode != 0:
            pytest.skip(f"lm-eval {version} can't be fetched: {ran.stderr.strip().splitlines()[-1:]}")
        done.touch()
    return folder
