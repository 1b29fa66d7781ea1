"""Our tasks as the harness loads them, without running them: for the doctor and for planning."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from typing import Any

from lm_eval.tasks import TaskManager

from qilin_tasks import tasks_folder
from qilin_tasks.errors import SettingError


def task_manager(metadata: Mapping[str, Any]) -> TaskManager:
    """The harness's index of our folder alone; `metadata` as with `--metadata` (model arguments merged in)."""
    return TaskManager(include_path=str(tasks_folder()), include_defaults=False, metadata=dict(metadata))


def expand(names: Sequence[str], manager: TaskManager) -> list[str]:
    """Tasks, groups and tags to the names of tasks, each once. Raises SettingError for a name that is none of ours."""
    found: dict[str, None] = {}
    for name in names:
        found.update(dict.fromkeys(_leaves(name, manager)))
    return list(found)


def _leaves(name: str, manager: TaskManager) -> list[str]:
    entry = manager.task_index.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, manager.all_tasks, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingError(f"task {name!r}: {hint}Choose from {', '.join(manager.all_tasks)}")
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
