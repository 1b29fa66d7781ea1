"""What the built wheel carries, and that it works away from the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(repo)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def relative(folder: Path, pattern: str) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_carries_every_file_of_the_package_and_the_tasks(unpacked: Path, repo: Path) -> None:
    assert relative(unpacked / "qilin_tasks" / "_lm_eval_tasks", "*") == relative(repo / "lm_eval_tasks", "*")
    carried = relative(unpacked / "qilin_tasks", "*")
    assert {name for name in carried if not name.startswith("_lm_eval_tasks/")} == relative(repo / "qilin_tasks", "*")
    assert "py.typed" in carried


def test_the_wheel_carries_no_folder_besides_the_package(unpacked: Path) -> None:
    top = {path.name for path in unpacked.iterdir()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"qilin_tasks"}


def test_the_wheel_declares_python_extras_and_entry_points(unpacked: Path) -> None:
    (info,) = unpacked.glob("*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    assert "Requires-Python: <3.14,>=3.10" in metadata
    for extra in ("vllm", "hf", "bertscore", "retrieval", "report", "dev"):
        assert f"Provides-Extra: {extra}\n" in metadata
    entry_points = (info / "entry_points.txt").read_text(encoding="utf-8")
    assert "qilin-tasks = qilin_tasks.cli:main" in entry_points
    assert "[lm_eval.models]" in entry_points


def test_the_unpacked_wheel_runs_on_its_own_sample(unpacked: Path, tmp_path: Path) -> None:
    """Only the wheel's folder is on the path before the checkout, and the sample comes out of it."""
    code = (
        "import qilin_tasks\n"
        "from qilin_tasks.sources.qilin import open_qilin\n"
        "source = open_qilin('sample')\n"
        "print(qilin_tasks.__file__)\n"
        "print(qilin_tasks.tasks_folder())\n"
        "print(source.note_count())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(unpacked), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    module, tasks, notes = ran.stdout.splitlines()
    assert Path(module).is_relative_to(unpacked)
    assert Path(tasks).is_relative_to(unpacked)
    assert (Path(tasks) / "qilin" / "qilin_dqa_na.yaml").is_file()
    assert int(notes) >= 40
