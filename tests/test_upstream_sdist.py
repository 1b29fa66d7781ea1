"""lm-eval's own tests of task folders, unchanged, out of its source distribution, over our tasks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest
from support.covers import draw_sample_covers
from support.reqa_cache import add_reqa_models
from support.upstream import lm_eval_release

pytestmark = pytest.mark.slow

# The class of upstream's tests that runs over new tasks; its three tests of upstream's own tasks load their data.
SELECTED = "TestNewTasksElseDefault"


@pytest.fixture(scope="module")
def source_distribution(repo: Path) -> Path:
    """The archive that belongs to the installed release."""
    return lm_eval_release(repo, version("lm_eval"), binary=False)


def names(folder: Path) -> list[str]:
    """The tasks (not the groups) that the YAML files of a folder define."""
    found = (
        re.search(r"^task: *([\w.-]+) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in sorted(folder.rglob("*.yaml"))
    )
    return [match.group(1) for match in found if match]


def test_upstream_accepts_every_task(
    source_distribution: Path, repo: Path, tmp_path: Path, bert_chinese_cache: Path, minilm: Path
) -> None:
    add_reqa_models(bert_chinese_cache, minilm=minilm)
    with tarfile.open(source_distribution) as archive:
        archive.extractall(tmp_path, filter="data")
    (upstream,) = tmp_path.glob("lm_eval-*")
    ours = []
    for folder in sorted(path for path in (repo / "lm_eval_tasks").iterdir() if path.is_dir()):
        shutil.copytree(folder, upstream / "lm_eval" / "tasks" / folder.name)
        ours += names(folder)
    # It shows the notes of a run of one's own, and is refused without one (test_dqa_documents.py).
    ours.remove("qilin_dqa_contexts")
    # They ask questions of one's own, and are refused without a folder of them (test_own_data.py).
    ours = [name for name in ours if not name.startswith("custom_dqa_")]
    assert {f"qilin_dqa_{condition}" for condition in ("na", "bm25", "bert", "oracle")} <= set(ours)
    (upstream / "tests" / "__init__.py").touch()
    (upstream / "tests" / "utils.py").write_text(f"def new_tasks():\n    return {ours!r}\n", encoding="utf-8")

    command = [
        sys.executable, "-m", "pytest", "tests/test_tasks.py", "-k", SELECTED, "-p", "no:cacheprovider", "-q", "-rA",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "QILIN_DATA": "sample",
        "REQA_DATA": "sample",
        "QILIN_IMAGES": str(draw_sample_covers(tmp_path / "covers")),
        "HF_HUB_CACHE": str(bert_chinese_cache),
        "PYTHONPATH": f"{upstream}{os.pathsep}{repo}",
    }
    ran = subprocess.run(command, cwd=upstream, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-4000:]
    passed = re.findall(rf"^PASSED tests/test_tasks\.py::{SELECTED}::(\w+)\[([\w.-]+)\]", ran.stdout, re.MULTILINE)
    assert {task for _, task in passed} == set(ours)
    assert len(passed) == 13 * len(ours)
