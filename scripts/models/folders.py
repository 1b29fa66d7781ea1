"""A model's folder appears whole or not at all, however many processes make it and wherever they are stopped."""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def _alone(root: Path, name: str) -> Iterator[None]:
    """One process at a time makes the model; the lock goes with the process, however it ends."""
    with (root / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_made(folder: Path) -> bool:
    """Whether the model is there."""
    return (folder / "config.json").is_file()


def make_whole(folder: Path, fill: Callable[[Path], None], *, anew: bool = False) -> None:
    """Fill a hidden folder beside `folder`, then rename it; a model that is there stays unless it is made `anew`."""
    root, name = folder.parent, folder.name
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root, name):
        if is_made(folder) and not anew:
            return
        # Left by a process that was killed: nobody else is at work here.
        for leftover in root.glob(f".{name}-unfinished-*"):
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(dir=root, prefix=f".{name}-unfinished-") as scratch:
            made = Path(scratch) / "new"
            made.mkdir()
            fill(made)
            for path in (made, *made.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            if folder.exists():
                folder.rename(Path(scratch) / "old")
            made.rename(folder)


def write_json(path: Path, content: Mapping[str, object] | Sequence[object]) -> None:
    """A settings file as people read it."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
