"""Where this Python's lm-evaluation-harness lies, and whether our tasks can use it; it is never imported here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from qilin_tasks.errors import DependencyError

MINIMUM_RELEASE = (0, 4, 13)
MINIMUM = ".".join(map(str, MINIMUM_RELEASE))
_UPGRADE = f"python -m pip install --upgrade 'lm-eval>={MINIMUM}'"


@dataclass(frozen=True)
class Harness:
    """The harness that `import lm_eval` would find: its version and its `lm_eval/tasks` folder."""

    version: str
    tasks: Path


def find_harness() -> Harness:
    """Locate lm-eval, release or editable, through the import system but without importing it.

    Raises DependencyError, naming what was found and the way out, when it is absent, a leftover namespace package,
    without its `tasks` folder, or older than the release our YAML needs.
    """
    folder = _package_folder()
    tasks = folder / "tasks"
    if not (tasks / "__init__.py").is_file():
        raise DependencyError(
            f"lm-eval at {folder} has no tasks/__init__.py, so its tasks folder is not the harness's own; "
            "reinstall it: python -m pip install --force-reinstall --no-deps lm-eval"
        )
    return Harness(version=_supported_version(folder), tasks=tasks)


def _package_folder() -> Path:
    try:
        spec = importlib.util.find_spec("lm_eval")
    except ValueError:
        # A module object without a spec sits in sys.modules: whatever it is, it is no installed package.
        spec = None
    if spec is None:
        raise DependencyError(f"lm-eval is not installed in this Python; install it: {_UPGRADE}")
    if spec.origin is None:
        places = ", ".join(spec.submodule_search_locations or ()) or "nowhere"
        raise DependencyError(
            f"`lm_eval` is an empty namespace package here ({places}), left behind by some other package; "
            f"remove that folder, then: {_UPGRADE}"
        )
    return Path(spec.origin).resolve().parent


def _supported_version(folder: Path) -> str:
    from packaging.version import InvalidVersion, Version

    try:
        version = importlib.metadata.version("lm_eval")
    except importlib.metadata.PackageNotFoundError:
        raise DependencyError(
            f"lm-eval at {folder} carries no version (a bare copy on PYTHONPATH?); install it properly: {_UPGRADE}"
        ) from None
    try:
        release = Version(version).release
    except InvalidVersion:
        raise DependencyError(
            f"lm-eval at {folder} has the version {version!r}; install a release: {_UPGRADE}"
        ) from None
    if release < MINIMUM_RELEASE:
        raise DependencyError(
            f"lm-eval {version} at {folder} is older than {MINIMUM}, which our tasks need: {_UPGRADE}"
        )
    return version
