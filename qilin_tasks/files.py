"""The one file layer: files appear whole or not at all, have one writer, and leave nothing behind when killed."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from qilin_tasks.errors import DataError

#: How the name of a file or folder begins until all of it is there and it is put in place.
UNFINISHED = ".unfinished-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: File systems take 255 bytes a name; what comes before and after it needs some.
_NAME_BYTES = 200


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns an OSError into one line (DataError) that names the file, the reason and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(
                f"{path}: no space left to write it ({error.strerror}); free some and run the same command again: "
                "what is finished is kept"
            ) from error
        reason = error.strerror or error
        raise DataError(f"{path}: can't be written ({reason}); choose a folder that exists and is yours") from error


def _stem(path: Path) -> str:
    return UNFINISHED + path.name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")


@contextmanager
def replacing(*paths: Path, mode: int = 0o644) -> Iterator[list[Path]]:
    """Names to write under, one beside each path; all are put in place, in that order, when all are written.

    On any error every path stays as it was, and nothing is left beside it.
    """
    names: list[Path] = []
    try:
        for path in paths:
            with explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                handle, made = tempfile.mkstemp(dir=path.parent, prefix=f"{_stem(path)}.")
                os.close(handle)
            names.append(Path(made))
        with explained(paths[0]):
            yield names
        for name, path in zip(names, paths, strict=True):
            with explained(path):
                with name.open("rb") as file:
                    os.fsync(file.fileno())
                name.chmod(mode)
        _put_in_place(names, paths)
    finally:
        for name in names:
            name.unlink(missing_ok=True)


def _put_in_place(names: Iterable[Path], paths: Iterable[Path]) -> None:
    placed: list[Path] = []
    new = {path for path in paths if not path.exists()}
    try:
        for name, path in zip(names, paths, strict=True):
            with explained(path):
                name.replace(path)
            placed.append(path)
    except BaseException:
        for path in new.intersection(placed):
            path.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | Iterable[str] | Callable[[BinaryIO], object], *, mode: int = 0o644) -> None:
    """Write UTF-8 text (whole or in parts), or what `content` writes into the open file, whole or not at all.

    Raises DataError where the disk is full or the folder can't be written.
    """
    with replacing(path, mode=mode) as [name], explained(path), name.open("wb") as file:
        if callable(content):
            content(file)
        else:
            for part in (content,) if isinstance(content, str) else content:
                file.write(part.encode("utf-8", "backslashreplace"))


def sweep(path: Path) -> None:
    """Removes what killed writers of `path` left beside it. Only for the holder of its lock."""
    for leftover in path.parent.glob(f"{glob.escape(_stem(path))}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


@contextmanager
def locked(
    path: Path,
    *,
    seconds: float = 0.0,
    held: str = "another process is writing this file; wait for it, or choose another --out",
) -> Iterator[None]:
    """Holds the right to write `path`, and sweeps its leftovers; a killed process frees it by dying.

    Raises DataError with `held` where another process keeps it for longer than `seconds`.
    """
    lock = path.with_name(f".{path.name}.lock")
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        while True:
            with explained(path):
                lock.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
            if _take(descriptor, lock):
                break
            os.close(descriptor)
            if time.monotonic() >= end:
                raise DataError(f"{path}: {held}")
            time.sleep(0.05)
        stack.callback(os.close, descriptor)
        stack.callback(lock.unlink, missing_ok=True)
        sweep(path)
        yield


def _take(descriptor: int, lock: Path) -> bool:
    """Whether the lock is ours now; its holder may have removed the file between our opening and locking it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock.stat().st_ino == os.fstat(descriptor).st_ino
    except OSError:
        return False


class Together:
    """Files that take their places together: each is written beside its place, none appears before all are whole."""

    def __init__(self) -> None:
        self._places: dict[Path, Path] = {}

    def write(self, path: Path, content: str) -> None:
        """As `write_whole`, but for the last step."""
        made = path.with_name(f"{_stem(path)}.{os.getpid()}")
        self._places[path] = made
        write_whole(made, content)

    def put(self) -> None:
        """All of them, in the order of writing."""
        _put_in_place(self._places.values(), self._places)

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
def writing_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder`, which takes its place when the block ends; an exception leaves nothing of it."""
    with locked(folder, held="another process is writing this folder; wait for it, or choose another"):
        with explained(folder):
            made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{_stem(folder)}."))
        try:
            with explained(folder):
                made.chmod(0o755)
                yield made
                put_folder(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def put_folder(made: Path, place: Path) -> None:
    """Put a folder that is whole in the place of another, by renaming: a reader sees the one or the other."""
    if not place.exists():
        made.rename(place)
        return
    aside = place.with_name(f"{_stem(place)}-{os.getpid()}")
    place.rename(aside)
    try:
        made.rename(place)
    except OSError:
        aside.rename(place)
        raise
    shutil.rmtree(aside)
