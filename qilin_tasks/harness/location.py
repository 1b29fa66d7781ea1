"""Where this Python's lm-evaluation-harness lies, and whether our tasks can use it; it is never imported here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from qilin_tasks import __version__
from qilin_tasks.errors import DependencyError

#: Older releases have no dotted `!function`, which our YAML is made of.
MINIMUM_RELEASE = (0, 4, 12)
MINIMUM = ".".join(map(str, MINIMUM_RELEASE))
#: What the tests run; a development version counts as the release it leads to.
TESTED = ("0.4.12", "0.4.13", "0.5.0.dev1")
_UPGRADE = f"python -m pip install --upgrade 'lm-eval>={MINIMUM}'"


@dataclass(frozen=True)
class Harness:
    """The harness that `import lm_eval` would find: its version and its `lm_eval/tasks` folder."""

    version: str
    tasks: Path

    @property
    def untested(self) -> str:
        """What to tell a user whose harness the tests don't know; empty where they do."""
        return untested(self.version)


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
    from packaging.version import InvalidVersion

    try:
        version = importlib.metadata.version("lm_eval")
    except importlib.metadata.PackageNotFoundError:
        raise DependencyError(
            f"lm-eval at {folder} carries no version (a bare copy on PYTHONPATH?); install it properly: {_UPGRADE}"
        ) from None
    try:
        old = release(version) < MINIMUM_RELEASE
    except InvalidVersion:
        raise DependencyError(
            f"lm-eval at {folder} has the version {version!r}; install a release: {_UPGRADE}"
        ) from None
    if old:
        raise DependencyError(
            f"lm-eval {version} at {folder} is older than {MINIMUM}, which our tasks need: {_UPGRADE}"
        )
    return version


def release(version: str) -> tuple[int, ...]:
    """The release that a version is or leads to: (0, 5, 0) of `0.5.0.dev1`."""
    from packaging.version import Version

    numbers = Version(version).release
    return (*numbers, 0, 0)[:3] if len(numbers) < 3 else numbers


def untested(version: str) -> str:
    """The one line about a harness that is none of TESTED; empty for one of them."""
    if release(version) in map(release, TESTED):
        return ""
    return (
        f"lm-eval {version} is newer than what qilin-tasks {__version__} was tested with ({', '.join(TESTED)}): look "
        "for a newer qilin-tasks where something fails"
    )
