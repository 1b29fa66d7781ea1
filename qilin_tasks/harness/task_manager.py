"""The harness's task index with our folders in it, opened the quick way where it is enough, and our tasks out of it."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from typing import Any

from lm_eval.tasks import TaskManager

from qilin_tasks import tasks_folder
from qilin_tasks.errors import SettingError

#: Names that only our folders can hold: the harness's index is not read for them.
OUR_PREFIXES = ("qilin", "reqa")


def task_manager(names: Sequence[str], *, metadata: Mapping[str, Any], include_path: Sequence[str] = ()) -> TaskManager:
    """A TaskManager that knows all `names`: our folders and `include_path`, the harness's thousands only where needed.

    `metadata` as with `--metadata` (model arguments merged in). Raises SettingError for a name that is no task, group
    or tag.
    """
    for path in include_path:
        if not Path(path).is_dir():
            raise SettingError(f"--include_path {path}: no such folder")
    paths = [str(tasks_folder()), *include_path]
    for defaults in (False, True):
        manager = TaskManager(include_path=paths, include_defaults=defaults, metadata=dict(metadata))
        unknown = [name for name in names if name not in manager.all_tasks]
        if not unknown:
            return manager
        if unknown[0].startswith(OUR_PREFIXES):
            break
    near = difflib.get_close_matches(unknown[0], manager.all_tasks, n=5, cutoff=0.5)
    raise SettingError(
        f"task {unknown[0]!r}: not a task, group or tag of this harness"
        + (f"; close: {', '.join(near)}" if near else "")
        + ". All names: qilin-tasks run ls tasks"
    )


def expand(names: Sequence[str], manager: TaskManager) -> list[str]:
    """Tasks, groups and tags to the names of tasks, each once."""
    return list(dict.fromkeys(leaf for name in names for leaf in _leaves(name, manager)))


def _leaves(name: str, manager: TaskManager) -> list[str]:
    entry = manager.task_index[name]
    children = (entry.cfg or {}).get("task")
    if entry.kind.name == "TAG":
        children = sorted(entry.tags)
    if not isinstance(children, (list, tuple)):
        return [name]
    names = [child if isinstance(child, str) else str(child.get("task") or child.get("group")) for child in children]
    return [leaf for child in names for leaf in _leaves(child, manager)]


def recipe(name: str, manager: TaskManager) -> dict[str, Any]:
    """The settings that a task will read: the defaults of its base file, its own metadata, then the manager's."""
    config = manager.task_index[name].cfg or {}
    return {**(config.get("dataset_kwargs") or {}), **(config.get("metadata") or {}), **(manager.metadata or {})}


def requests(task: Any) -> list[Any]:
    """Every request that a run of the task would send, with its prompt, without a chat template."""
    # The harness's progress bar is for a person who waits, not for a log.
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):
        task.build_all_requests(limit=None, rank=0, world_size=1, cache_requests=False, rewrite_requests_cache=False)
    instances: list[Any] = task.instances
    return instances


def load(name: str, manager: TaskManager) -> Any:
    """The task with its documents. Raises QilinTasksError where its data or settings are not in order."""
    return manager.load([name])["tasks"][name]
