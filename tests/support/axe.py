"""Where Deque's axe-core lies, if it is installed: npm's package, for tests only."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
MISSING = "needs axe-core (npm install --no-save axe-core, in the repository or with --global)"


@cache
def axe_core() -> str | None:
    """The program's text, from the repository's node_modules or from npm's global ones."""
    folders = [REPO / "node_modules"]
    if npm := shutil.which("npm"):
        said = subprocess.run([npm, "root", "--global"], capture_output=True, text=True, check=False, timeout=60)
        folders += [Path(said.stdout.strip())] if said.stdout.strip() else []
    found = next((path for folder in folders if (path := folder / "axe-core" / "axe.min.js").is_file()), None)
    return found.read_text(encoding="utf-8") if found else None
