"""What the tests of upstream's folders share: a checkout to write into, lm-eval's releases, CI's environment."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from qilin_tasks.upstream.checkout import FOLDERS, write_upstream
from qilin_tasks.upstream.documents import publish_documents
from support.real_models import only_one

RUN = Path(__file__).with_name("upstream_run.py")
TABLE = """\
# Tasks

| Task Family | Description | Language(s) |
|---|---|---|
| [aime](aime/README.md) | a | English |
| zulu | z | Zulu |
"""
# What `pip install -e '.[dev,ifeval,unitxt,math,longbench,hf]'` (upstream's new_tasks.yml) doesn't bring.
NOT_IN_CI = ("bert_score", "rapidfuzz", "qilin", "_editable_impl_qilin", "lm_eval", "__pycache__")


def fake_checkout(folder: Path) -> Path:
    """As much of a checkout of lm-evaluation-harness as `qilin-tasks upstream` looks at."""
    (folder / "lm_eval" / "tasks" / "aime").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "lm_eval"\n', encoding="utf-8")
    (folder / "lm_eval" / "tasks" / "README.md").write_text(TABLE, encoding="utf-8")
    return folder


def sample_documents(folder: Path) -> Path:
    """The documents of every folder that goes upstream, made from the sample, in `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        for chosen in FOLDERS.values():
            publish_documents(folder, chosen.data, metadata={})
    return folder


def tasks_checkout(folder: Path, *, documents: Path) -> Path:
    """A checkout in `folder` with every folder of ours in it, over `documents`; the folder of its tasks."""
    checkout = fake_checkout(folder)
    write_upstream(checkout, list(FOLDERS), dataset=str(documents))
    return checkout / "lm_eval" / "tasks"


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def load_utils(path: Path) -> ModuleType:
    """As the harness loads it: executed before it is in sys.modules."""
    spec = importlib.util.spec_from_file_location(f"utils_of_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lm_eval_release(repo: Path, release: str, *, binary: bool) -> Path:
    """A release of lm-eval as a file, from the package index, kept in .models/; skips where there is no index."""
    folder = repo / ".models" / "sdist"
    name = f"lm_eval-{release}-py3-none-any.whl" if binary else f"lm_eval-{release}.tar.gz"
    with only_one("releases"):
        if not (folder / name).is_file():
            only = "--only-binary" if binary else "--no-binary"
            command = [
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--pre",
                "--no-build-isolation", only, ":all:", "--dest", str(folder), f"lm-eval=={release}",
            ]  # fmt: skip
            fetched = subprocess.run(command, capture_output=True, text=True, check=False)
            if fetched.returncode != 0:
                pytest.skip(f"lm-eval {release} is not to be had from the package index: {fetched.stderr[-300:]}")
    return folder / name


def unpack_sdist(archive: Path, folder: Path) -> Path:
    """lm-eval's source distribution without its task folders, more than ten thousand files; the checkout's place."""
    with tarfile.open(archive) as opened:
        members = [
            item
            for item in opened.getmembers()
            if item.name.split("/tasks/")[-1].count("/") == 0 or "/tasks/" not in item.name
        ]
        opened.extractall(folder, members=members, filter="data")
    (upstream,) = folder.glob("lm_eval-*")
    return upstream


def unpack_wheel(archive: Path, folder: Path) -> Path:
    """lm-eval's wheel without its task folders, as a folder for PYTHONPATH."""
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if not name.startswith("lm_eval/tasks/") or name.count("/") == 2]
        opened.extractall(folder, members=names)
    return folder


def ci_python(folder: Path) -> Path:
    """A Python with what upstream's CI installs, lm-eval itself left out: no bert-score, rapidfuzz or qilin_tasks."""
    rest = folder / "site-packages"
    rest.mkdir(parents=True)
    for entry in Path(pytest.__file__).parents[1].iterdir():
        if not entry.name.lower().replace("-", "_").startswith(NOT_IN_CI):
            (rest / entry.name).symlink_to(entry)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "rest.pth").write_text(f"{rest}\n", encoding="utf-8")
    return folder / "venv" / "bin" / "python"


def python_run(
    python: Path | str, *arguments: str, cwd: Path, lm_eval: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A Python process, offline, with `lm_eval` (a folder that holds the package) before what is installed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("QILIN_DATA", "REQA_DATA", "PYTHONPATH")}
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment}
    if lm_eval is not None:
        settings["PYTHONPATH"] = str(lm_eval)
    return subprocess.run(
        [str(python), *arguments], cwd=cwd, env={**kept, **settings}, capture_output=True, text=True, check=False
    )


def values_under(
    lm_eval: Path | None, tasks_folder: Path, tasks: str, *options: str, cwd: Path, **environment: str
) -> dict[str, Any]:
    """What `upstream_run.py` finds under an lm-eval; BERTScore is off unless `environment` says otherwise."""
    environment = {"QILIN_BERTSCORE": "off", **environment}
    ran = python_run(
        sys.executable, str(RUN), str(tasks_folder), tasks, *options, cwd=cwd, lm_eval=lm_eval, **environment
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    found: dict[str, Any] = json.loads(ran.stdout[ran.stdout.index('{"lm_eval"') :])
    return found
