"""Files appear whole or not at all, on full disks and after kills too, and have one writer."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qilin_tasks import files
from qilin_tasks.errors import DataError, SettingError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_that_utf8_can_not_hold_is_escaped(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "a.txt", "甲\ud800")
    assert (tmp_path / "a.txt").read_bytes() == "甲\\ud800".encode()
    assert names(tmp_path) == ["a.txt"]


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stopped"), files.writing(path) as file:
        file.write(b"half")
        raise RuntimeError("stopped")
    assert (path.read_text(), names(tmp_path)) == ("old", ["a"])


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "secret", "x", private=True)
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0


FULL = """
import resource, signal, sys
from pathlib import Path
from qilin_tasks import files
from qilin_tasks.errors import DataError
# The kernel answers EFBIG instead of ending the process.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    files.write_whole(Path(sys.argv[1]), "x" * 5000)
except DataError as error:
    print(error)
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    repo = str(Path(__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": repo},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on the size of files")
def test_no_space_is_one_line_and_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    said = run(FULL, str(path)).stdout
    assert said.startswith(f"{path}: no space left to write it") and said.count("\n") == 1
    assert (path.read_text(), names(tmp_path)) == ("old", ["a"])


def test_a_folder_that_can_not_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"file/a: can't be written"):
        files.write_whole(tmp_path / "file" / "a", "x")


def test_files_together_appear_together(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), files.together() as made:
        made.write(tmp_path / "a", "1")
        made.write(tmp_path / "b", "2")
        raise RuntimeError("the third can't be made")
    assert names(tmp_path) == []
    with files.together() as made:
        made.write(tmp_path / "a", "1")
        assert not (tmp_path / "a").exists()
        made.write(tmp_path / "b", "2")
    assert names(tmp_path) == ["a", "b"]


HOLD = """
import sys, time
from pathlib import Path
from qilin_tasks import files
with files.only_writer(Path(sys.argv[1])):
    files.unfinished(Path(sys.argv[1])).write_text("half")
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_writer_and_what_a_killed_one_left_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    repo = str(Path(__file__).resolve().parents[1])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        env={**os.environ, "PYTHONPATH": repo},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(SettingError, match="another process is writing this file"), files.only_writer(path):
            pass
        assert any(name.endswith(".part") for name in names(tmp_path))
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with files.only_writer(path):
        assert not any(name.endswith(".part") for name in names(tmp_path))
    assert names(tmp_path) == []


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    code = HOLD.replace("files.only_writer(Path(sys.argv[1]))", 'files.locked(Path(sys.argv[1]), busy="b")').replace(
        "600", "1"
    )
    repo = str(Path(__file__).resolve().parents[1])
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        env={**os.environ, "PYTHONPATH": repo},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with files.locked(lock, busy="held too long", seconds=120):
        assert holder.wait() == 0


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "what").write_text(name)
    files.put_folder(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old" / "what").read_text() == "new"
    assert names(tmp_path) == ["old"]
