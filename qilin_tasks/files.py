"""Files that appear whole or not at all, one writer at a time: the only place that knows how."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from qilin_tasks.errors import DataError, SettingError

#: How the name of a task's folder begins until its files are all there and it is put in place.
UNFINISHED = ".unfinished-"
_PART = ".part"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cannot_write(path: Path, error: OSError) -> DataError:
    """One line for a full disk or a folder that can't be written, to raise."""
    if error.errno in _FULL:
        return DataError(
            f"{path}: no space left to write it ({error.strerror}); free some and run the same command again: "
            "what is finished is kept"
        )
    return DataError(f"{path}: can't be written ({error.strerror or error}); choose a folder that exists and is yours")


def unfinished(path: Path) -> Path:
    """The name that `path` has while this process writes it."""
    return path.with_name(f".{path.name}.{os.getpid()}{_PART}")


def sweep(path: Path) -> None:
    """Removes what killed writers of `path` left half written; the caller holds its lock."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{_PART}"):
        leftover.unlink(missing_ok=True)


def sweep_folder(folder: Path) -> None:
    """As `sweep`, for every file of a folder that has one writer."""
    for leftover in folder.glob(f".*{_PART}"):
        leftover.unlink(missing_ok=True)


@contextmanager
def writing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A binary file that takes its place when the block ends; on any error `path` stays as it was.

    `private`: for its owner alone (0600). Raises DataError for a full disk or a folder that can't be written.
    """
    temporary = unfinished(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write bytes or UTF-8 text, whole or not at all; what UTF-8 can't hold is written as its escape."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with writing(path, private=private) as file:
        file.write(data)


class Together:
    """Files that take their places together: each is written beside its place, none appears before all are whole."""

    def __init__(self) -> None:
        self._places: dict[Path, Path] = {}

    def write(self, path: Path, content: str) -> None:
        """As `write_whole`, but for the last step."""
        made = path.with_name(f".{path.name}.{os.getpid()}.together{_PART}")
        self._places[path] = made
        write_whole(made, content)

    def put(self) -> None:
        """All of them, in the order of writing."""
        for path, made in self._places.items():
            made.replace(path)

    def discard(self) -> None:
        """What was not put."""
        for made in self._places.values():
            made.unlink(missing_ok=True)


@contextmanager
def together() -> Iterator[Together]:
    """Files that are put when the block ends; an exception in it leaves none of them."""
    files = Together()
    try:
        yield files
        files.put()
    finally:
        files.discard()


@contextmanager
def locked(lock: Path, *, busy: str, seconds: float = 0.0) -> Iterator[None]:
    """Holds the file `lock`, waiting at most `seconds`; a killed holder frees it by dying.

    Raises SettingError with `busy` where another process keeps it, DataError where the folder can't be written.
    """
    end = time.monotonic() + seconds
    while (descriptor := _take(lock)) is None:
        if time.monotonic() >= end:
            raise SettingError(busy)
        time.sleep(0.1)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _take(lock: Path) -> int | None:
    """The held lock's descriptor, None where another process has it."""
    import fcntl

    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise cannot_write(lock, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file may have been removed by its holder between our opening and locking it.
        if lock.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Holds the right to write `path`, with what killed writers left swept away."""
    busy = f"{path}: another process is writing this file; wait for it, or choose another --out"
    with locked(path.with_name(f".{path.name}.lock"), busy=busy):
        sweep(path)
        yield


def put_folder(made: Path, place: Path) -> None:
    """Put a folder that is whole in the place of another, by renaming: a reader sees the one or the other."""
    if not place.exists():
        made.rename(place)
        return
    aside = place.with_name(f"{UNFINISHED}{place.name}-{os.getpid()}")
    place.rename(aside)
    try:
        made.rename(place)
    except OSError:
        aside.rename(place)
        raise
    shutil.rmtree(aside)
