"""Our task folders inside the harness: which state a copy is in, putting it there, taking it away.

A file named `.qilin-tasks.json` in each copied folder lists the files that are ours with their SHA-256, so that every
decision is made by content: nothing that somebody else wrote or edited is overwritten or removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from qilin_tasks import __version__, tasks_folder
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.files import put_folder

MANIFEST = ".qilin-tasks.json"
_TEMPORARY = ".qilin-tasks-unfinished-"

State = Literal["missing", "current", "identical", "stale", "obsolete", "modified", "foreign"]

#: What each state means, and what `install` does about it.
STATES: dict[State, str] = {
    "missing": "not installed",
    "current": "installed and current",
    "identical": "there already, word for word, but not put there by qilin-tasks; left alone",
    "stale": "ours, but not this version's files",
    "obsolete": "ours, but this version no longer has it",
    "modified": "ours, but edited since",
    "foreign": "not ours",
}
CURRENT: frozenset[State] = frozenset({"current", "identical"})
REFUSED: frozenset[State] = frozenset({"modified", "foreign"})


class InstallError(QilinTasksError):
    """The harness's folder can't be written, or holds something that is not ours to overwrite."""


@dataclass(frozen=True)
class Copy:
    """One of our folders and its counterpart in the harness; `files` are the names that explain the state."""

    target: Path
    state: State
    source: Path | None
    files: tuple[str, ...] = ()


def task_folders(root: Path | None = None) -> list[Path]:
    """Our folders of YAML, by name; raises InstallError where the package carries none."""
    root = tasks_folder() if root is None else root
    folders = sorted(path for path in root.glob("*") if path.is_dir() and any(file_names(path)))
    if not folders:
        raise InstallError(f"{root} holds no task folders; reinstall qilin-tasks")
    return folders


def survey(harness_tasks: Path, *, root: Path | None = None) -> list[Copy]:
    """The state of every folder of ours in `harness_tasks`, this version's first, then what older versions left."""
    copies = [_inspect(source, harness_tasks / source.name) for source in task_folders(root)]
    known = {copy.target.name for copy in copies}
    for manifest in sorted(harness_tasks.glob(f"*/{MANIFEST}")):
        folder = manifest.parent
        if folder.name not in known and not folder.name.startswith(_TEMPORARY):
            copies.append(_inspect(None, folder))
    return copies


def install(harness_tasks: Path, *, root: Path | None = None) -> list[Copy]:
    """Bring every folder to this version's files and return what was done (the states are those found before).

    Nothing is written when any folder is refused; each folder appears whole, by a rename. Files that a user put into
    one of our folders stay. Raises InstallError on a refusal or where the harness can't be written.
    """
    copies = survey(harness_tasks, root=root)
    refused = [copy for copy in copies if copy.state in REFUSED]
    if refused:
        raise InstallError("; ".join(map(_refusal, refused)))
    with _writing(harness_tasks):
        for leftover in harness_tasks.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover)
        for copy in copies:
            if copy.state == "obsolete":
                _remove(copy.target)
            elif copy.state in ("missing", "stale"):
                _replace(copy)
    return copies


def uninstall(harness_tasks: Path, *, root: Path | None = None) -> list[tuple[Copy, tuple[str, ...]]]:
    """Remove exactly the files that `install` wrote; with each folder come the names that stay.

    Files added or edited since stay, and so does a folder that qilin-tasks did not write.
    """
    removed: list[tuple[Copy, tuple[str, ...]]] = []
    with _writing(harness_tasks):
        for copy in survey(harness_tasks, root=root):
            if copy.state == "missing":
                continue
            if _read_manifest(copy.target) is not None:
                _remove(copy.target)
            removed.append((copy, tuple(file_names(copy.target))))
    return removed


def file_names(folder: Path) -> Iterator[str]:
    """The names of a folder's files, `/`-separated and sorted, without caches and our manifest."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            continue
        if "__pycache__" not in name.parts and name.as_posix() != MANIFEST:
            yield name.as_posix()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _hashes(folder: Path) -> dict[str, str]:
    return {name: _hash(folder / name) for name in file_names(folder)}


def _read_manifest(folder: Path) -> dict[str, str] | None:
    """The files that we wrote and their hashes; None where there is no manifest of ours that can be believed."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        return None
    # A manifest that points outside its folder is not ours, and must not lead `uninstall` there.
    if any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in files):
        return None
    return files


def _inspect(source: Path | None, target: Path) -> Copy:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        return Copy(target, "foreign", source, (target.name,))
    if not target.exists():
        return Copy(target, "missing", source)
    ours = _hashes(source) if source is not None else {}
    there = _hashes(target)
    written = _read_manifest(target)
    if written is None:
        same = bool(ours) and all(there.get(name) == digest for name, digest in ours.items())
        return Copy(target, "identical" if same else "foreign", source, tuple(there))
    if source is None:
        return Copy(target, "obsolete", None, tuple(written))
    # A file that already has the text we would write is nobody's loss, whoever put it there.
    edited = [
        name for name, digest in there.items() if name in written and digest not in (written[name], ours.get(name))
    ]
    added = [name for name in there if name in ours and name not in written and there[name] != ours[name]]
    if edited or added:
        return Copy(target, "modified", source, (*edited, *added))
    changed = sorted({name for name in {*ours, *written} if there.get(name) != ours.get(name) or name not in written})
    return Copy(target, "stale" if changed or written != ours else "current", source, tuple(changed))


def _refusal(copy: Copy) -> str:
    names = ", ".join(copy.files[:5]) + (" …" if len(copy.files) > 5 else "")
    if copy.state == "modified":
        return (
            f"{copy.target}: {names} changed since qilin-tasks wrote it and would be lost; move the changes to a "
            "folder of your own (`--include_path`), delete the changed file, and install again"
        )
    return (
        f"{copy.target} was not written by qilin-tasks ({names or 'an empty folder'}); move it away and install again, "
        "or leave it and use `qilin-tasks run`, or `lm_eval --include_path $(qilin-tasks path)`"
    )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turns a folder that can't be written into an error that names it and the way out."""
    try:
        yield
    except OSError as error:
        raise InstallError(
            f"{folder} can't be written ({error.strerror or error}); run as the user who installed lm-eval, use a "
            "virtual environment of your own, or leave it and use `qilin-tasks run`, which needs no installed copy"
        ) from error


def _temporary(folder: Path) -> Path:
    # Not tempfile.mkdtemp: its folders are for the owner alone, and other users read the harness too.
    return folder / f"{_TEMPORARY}{secrets.token_hex(4)}"


def _replace(copy: Copy) -> None:
    """Build the whole new folder beside the old one, user's files included, then swap by renaming."""
    source, target = copy.source, copy.target
    if source is None:
        raise InstallError(f"{target}: nothing to install from")
    written = _read_manifest(target) or {}
    ours = _hashes(source)
    fresh = _temporary(target.parent)
    fresh.mkdir()
    try:
        for name in ours:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, fresh / name)
        for name in file_names(target) if target.exists() else ():
            if name not in ours and name not in written:
                (fresh / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(target / name, fresh / name, follow_symlinks=False)
        manifest = {"package": "qilin-tasks", "version": __version__, "files": ours}
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        put_folder(fresh, target)
    finally:
        if fresh.exists():
            shutil.rmtree(fresh)


def _remove(folder: Path) -> None:
    """Delete our unedited files, the manifest last, so that an interrupted removal can be finished."""
    for name, digest in (_read_manifest(folder) or {}).items():
        path = folder / name
        if path.is_file() and not path.is_symlink() and _hash(path) == digest:
            path.unlink()
    (folder / MANIFEST).unlink()
    for cache in [path for path in folder.rglob("__pycache__") if path.is_dir()]:
        shutil.rmtree(cache)
    for parent, _, _ in os.walk(folder, topdown=False):
        if not any(Path(parent).iterdir()):
            Path(parent).rmdir()
