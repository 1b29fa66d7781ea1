"""Files that appear whole or not at all: full disks, read-only folders, killed writers, two writers."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qilin_tasks.errors import DataError
from qilin_tasks.files import UNFINISHED, locked, put_folder, replacing, together, write_whole


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel refuses longer files (EFBIG), as it does a write to a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_text_parts_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "答.json"
    write_whole(path, "答\ud800")
    assert path.read_bytes() == "答\\ud800".encode()
    write_whole(path, (part for part in "ab"), mode=0o600)
    assert path.read_text() == "ab"
    assert path.stat().st_mode & 0o777 == 0o600
    write_whole(path, lambda file: file.write(b"\0"))
    assert path.read_bytes() == b"\0"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_that_grows_too_large_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_whole(path, "old")
    with largest_file(10_000), pytest.raises(DataError, match=rf"^{path}: no space left.*kept$"):
        write_whole(path, "new" * 10_000)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_a_full_disk(tmp_path: Path) -> None:
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.decode().strip()}")
    try:
        write_whole(tmp_path / "x", "old")
        with pytest.raises(DataError, match="no space left"):
            write_whole(tmp_path / "x", "n" * 200_000)
        assert (tmp_path / "x").read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 1
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"file/x: can't be written \(.+\); choose"):
        write_whole(tmp_path / "file" / "x", "text")
    with pytest.raises(DataError, match="can't be written"), locked(tmp_path / "file" / "x"):
        pytest.fail("locked")


def test_several_files_come_together_or_not_at_all(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    (tmp_path / "b").mkdir()  # a file can't be put in its place
    with pytest.raises(DataError, match="b: can't be written"), replacing(*paths) as names:
        for name in names:
            name.write_text("new")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
    with pytest.raises(KeyError), replacing(*paths) as names:
        raise KeyError
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_what_a_killed_writer_left_is_swept_by_the_next(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom qilin_tasks.files import locked, write_whole\n"
        "def die(file):\n    file.write(b'half'); file.flush(); os.kill(os.getpid(), 9)\n"
        "path = Path(sys.argv[1])\nwith locked(path):\n    write_whole(path, die)\n"
    )
    path = tmp_path / "[x].json"
    write_whole(tmp_path / "other", "stays")
    ran = subprocess.run([sys.executable, "-c", program, str(path)], env={**os.environ}, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert not path.exists()
    assert any(p.name.startswith(UNFINISHED) for p in tmp_path.iterdir())
    with locked(path):
        assert not any(p.name.startswith(UNFINISHED) for p in tmp_path.iterdir())
    assert [p.name for p in tmp_path.iterdir()] == ["other"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with locked(path), pytest.raises(DataError, match="x: another process"), locked(path):
        pytest.fail("two hold it")
    with locked(path):
        assert not path.exists()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_together_appear_together(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), together() as made:
        made.write(tmp_path / "a", "1")
        made.write(tmp_path / "b", "2")
        raise RuntimeError("the third can't be made")
    assert names(tmp_path) == []
    with together() as made:
        made.write(tmp_path / "a", "1")
        assert not (tmp_path / "a").exists()
        made.write(tmp_path / "b", "2")
    assert names(tmp_path) == ["a", "b"]


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "what").write_text(name)
    put_folder(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "what").read_text() == "new"
    assert names(tmp_path) == ["old"]
