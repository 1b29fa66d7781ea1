"""Folders that appear whole or not at all: written beside their place, then renamed, all of them or none."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from qilin_tasks.errors import QilinTasksError

_UNFINISHED = ".qilin-tasks-unfinished-"


class Staging:
    """What is to be put into place together; `folder` gives a place to write, `file` holds a text."""

    def __init__(self) -> None:
        self._folders: dict[Path, Path] = {}
        self._texts: dict[Path, str] = {}

    def folder(self, target: Path) -> Path:
        """An empty folder beside `target`, which will become it."""
        target.parent.mkdir(parents=True, exist_ok=True)
        place = target.parent / f"{_UNFINISHED}{target.name}-{secrets.token_hex(4)}"
        place.mkdir()
        self._folders[target] = place
        return place

    def file(self, target: Path, text: str) -> None:
        """`target` will hold `text`."""
        self._texts[target] = text

    def commit(self) -> None:
        """Put everything into place; after a failure what was there before is there again."""
        moved: dict[Path, Path | None] = {}
        try:
            for target, place in self._folders.items():
                aside = target.with_name(f"{place.name}-old") if target.exists() else None
                if aside is not None:
                    target.rename(aside)
                moved[target] = aside
                place.rename(target)
            for target, text in self._texts.items():
                _write(target, text)
        except OSError:
            for target, aside in moved.items():
                shutil.rmtree(target, ignore_errors=True)
                if aside is not None:
                    aside.rename(target)
            raise
        for aside in moved.values():
            if aside is not None:
                shutil.rmtree(aside)

    def discard(self) -> None:
        """Remove what was written and never put into place."""
        for place in self._folders.values():
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def staging() -> Iterator[Staging]:
    """A Staging that is committed at the end of the block and discarded by any exception in it."""
    staged = Staging()
    try:
        yield staged
        staged.commit()
    except OSError as error:
        raise QilinTasksError(f"{error.filename or 'the target'}: can't be written ({error.strerror})") from error
    finally:
        staged.discard()


def _write(target: Path, text: str) -> None:
    temporary = target.with_name(f"{_UNFINISHED}{target.name}")
    try:
        temporary.write_text(text, encoding="utf-8")
        with suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_other_files(target: Path, files: Mapping[str, str] | None, *, replace: bool) -> None:
    """QilinTasksError where `target` is there with other content than `files` (None: any) and may not be replaced."""
    if not target.exists() or replace:
        return
    found = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    found = [name for name in found if "__pycache__" not in name]
    other = [name for name in found if files is None or _text(target / name) != files.get(name)]
    if other or target.is_file():
        shown = ", ".join(other[:5]) + (f" and {len(other) - 5} more" if len(other) > 5 else "")
        raise QilinTasksError(
            f"{target} is there already with other content ({shown or 'a file'}): move it away, or pass --replace to "
            "put ours in its place"
        )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
