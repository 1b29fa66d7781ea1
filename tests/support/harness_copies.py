"""Throw-away copies of the installed lm-eval, in the layouts that pip makes: a release, and an editable checkout."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class HarnessCopy:
    """A Python whose `import lm_eval` finds the copy, and the copy's `tasks` folder."""

    python: str
    path: tuple[str, ...]
    tasks: Path

    def run(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS…` outside the checkout, with the copy and this checkout importable."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*self.path, str(REPO)]), "HF_HUB_OFFLINE": "1"}
        return subprocess.run(
            [self.python, "-B", *arguments],
            env=environment,
            cwd=self.tasks,
            capture_output=True,
            text=True,
            check=False,
            **options,  # type: ignore[call-overload]
        )

    def command(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        """`qilin-tasks ARGUMENTS…`."""
        return self.run("-m", "qilin_tasks.cli", *arguments, **options)


def package() -> Path:
    """The folder of the installed lm_eval."""
    spec = importlib.util.find_spec("lm_eval")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def copy_package(target: Path) -> Path:
    """lm_eval with one of its task folders (its thousands of others would only cost time)."""
    source = package()

    def leave_out(folder: str, names: list[str]) -> list[str]:
        if Path(folder) == source / "tasks":
            return [name for name in names if (source / "tasks" / name).is_dir() and name != "sciq"]
        return ["__pycache__"] if "__pycache__" in names else []

    shutil.copytree(source, target, ignore=leave_out)
    return target


def release(folder: Path, *, version: str = "") -> HarnessCopy:
    """`lm_eval/` beside its `.dist-info`, as a wheel leaves them; `version` writes another one into the metadata."""
    copy_package(folder / "lm_eval")
    real = importlib.metadata.version("lm_eval")
    metadata = folder / f"lm_eval-{version or real}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: lm_eval\nVersion: {version or real}\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    return HarnessCopy(sys.executable, (str(folder),), folder / "lm_eval" / "tasks")


def editable(folder: Path) -> HarnessCopy:
    """A checkout installed by setuptools' own editable build (PEP 660: what `pip install -e` does), in its own venv.

    Its `.pth` and import hook come from setuptools; the test run's packages are put behind them.
    """
    checkout = folder / "lm-evaluation-harness"
    checkout.mkdir(parents=True)
    copy_package(checkout / "lm_eval")
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "lm_eval"\nversion = "{importlib.metadata.version("lm_eval")}"\n'
        '[tool.setuptools.packages.find]\ninclude = ["lm_eval*"]\n',
        encoding="utf-8",
    )
    build = "import sys; from setuptools import build_meta; print(build_meta.build_editable(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=checkout, check=True, capture_output=True)
    environment = folder / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    (wheel,) = folder.glob("*.whl")
    shutil.unpack_archive(wheel, site, format="zip")
    # Everything but the test run's own lm-eval: setuptools' hook comes after the path, which would win. By the folder's
    # name dill, with which datasets makes fingerprints, knows that these are installed packages.
    rest = folder / "site-packages"
    rest.mkdir()
    for entry in package().parent.iterdir():
        if not entry.name.startswith(("lm_eval", "__pycache__")):
            (rest / entry.name).symlink_to(entry)
    (site / "zz_the_test_run.pth").write_text(f"{rest}\n", encoding="utf-8")
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    return HarnessCopy(str(python), (), checkout / "lm_eval" / "tasks")
