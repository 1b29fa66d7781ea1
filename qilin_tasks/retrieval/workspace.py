"""Files of long work: one writer at a time, whole files only, finished parts kept for the next attempt."""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from qilin_tasks.errors import DataError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the right to write `path`; a second process gets a DataError. A killed process frees it by dying."""
    import fcntl

    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataError(
            f"{path}: can't be written ({error.strerror}); choose a folder that exists and is yours"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The file may have been removed by its holder between our opening and locking it.
            if not lock.exists() or lock.stat().st_ino != os.fstat(descriptor).st_ino:
                raise BlockingIOError(errno.EAGAIN, "the lock just changed hands")
        except OSError as error:
            raise DataError(
                f"{path}: another process is writing this file; wait for it, or choose another --out"
            ) from error
        try:
            # What a killed writer left half written: nobody else writes under this lock.
            for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
                leftover.unlink(missing_ok=True)
            yield
        finally:
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Calls `write` on a file beside `path` and then puts it in place; on any error `path` stays as it was.

    A full disk gives a DataError: what was finished before stays, so the same command goes on from there.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(
                f"{path}: no space left to write it ({error.strerror}); free some and run the same command again: "
                "what is finished is kept"
            ) from error
        raise DataError(f"{path}: can't be written ({error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def open_work(path: Path, recipe: Mapping[str, Any]) -> Path:
    """The folder of unfinished work for `path`: kept where it was begun with the same recipe, else begun anew."""
    folder = path.with_name(f".{path.name}.work")
    known = folder / "recipe.json"
    text = json.dumps(recipe, ensure_ascii=False, sort_keys=True)
    if folder.exists() and not (known.is_file() and known.read_text("utf-8") == text):
        shutil.rmtree(folder)
    if not folder.exists():
        folder.mkdir(parents=True)
        write_whole(known, lambda file: file.write(text.encode("utf-8")))
    for leftover in folder.glob(".*.part"):
        leftover.unlink()
    return folder


def close_work(path: Path) -> None:
    """Removes the folder of unfinished work for `path`."""
    shutil.rmtree(path.with_name(f".{path.name}.work"), ignore_errors=True)
