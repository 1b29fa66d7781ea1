"""The harness's task index with our folders in it, opened the quick way where it is enough, and our tasks out of it."""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from typing import Any

from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from qilin_tasks import tasks_folder
from qilin_tasks.errors import SettingError
from qilin_tasks.harness.core import setting_names
from qilin_tasks.metrics.own import OwnMetric, own_metrics

#: Names that only our folders can hold: the harness's index is not read for them.
OUR_PREFIXES = ("qilin", "reqa", "custom_dqa")


def task_manager(names: Sequence[str], *, metadata: Mapping[str, Any], include_path: Sequence[str] = ()) -> TaskManager:
    """A TaskManager that knows all `names`: our folders and `include_path`, the harness's thousands only where needed.

    `metadata` as with `--metadata` (model arguments merged in). A folder of the user's goes over ours, ours over the
    harness's. Raises SettingError for a name that is no task, group or tag.
    """
    check_folders(include_path)
    for defaults in (False, True):
        paths = [str(tasks_folder()), *include_path]
        manager = TaskManager(include_path=paths, include_defaults=defaults, metadata=dict(metadata))
        unknown = [name for name in names if not manager.match_tasks([name])]
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


def check_folders(include_path: Sequence[str]) -> None:
    """Raises SettingError for a folder that is not there: the harness would scan nothing, and miss the task later."""
    for path in include_path:
        if not Path(path).is_dir():
            raise SettingError(f"--include_path {path}: no such folder")


def expand(names: Sequence[str], manager: TaskManager) -> list[str]:
    """Tasks, groups and tags to the names of tasks, each once."""
    return list(dict.fromkeys(leaf for name in names for leaf in _leaves(name, manager)))


def _leaves(member: Any, manager: TaskManager) -> Iterator[str]:
    """The tasks of a name, or of an entry in a group's list: a map with a task's name, or a group of its own."""
    if isinstance(member, Mapping):
        children = member.get("task")
        if isinstance(children, str):
            yield from _leaves(children, manager)
            return
        if not children:
            yield from _leaves(str(member.get("group")), manager)
            return
    else:
        entry = _index(manager).get(member)
        if entry is None:
            yield member
            return
        children = sorted(entry.tags) if entry.kind.name == "TAG" else (entry.cfg or {}).get("task")
        if not isinstance(children, (list, tuple)):
            yield member
            return
    for child in children:
        yield from _leaves(child, manager)


def _index(manager: TaskManager) -> Mapping[str, Any]:
    """The harness's entries by name (0.5 calls them private)."""
    index: Mapping[str, Any] = getattr(manager, "task_index", None) or manager._task_index
    return index


def own_recipe(name: str, manager: TaskManager) -> dict[str, Any]:
    """The settings of a task's YAML: the defaults of its base file, then its own metadata."""
    entry = _index(manager).get(name)
    config = (entry.cfg if entry is not None else None) or {}
    return {**(config.get("dataset_kwargs") or {}), **(config.get("metadata") or {})}


def recipe(name: str, manager: TaskManager) -> dict[str, Any]:
    """The settings that a task will read: those of its YAML, then the manager's."""
    return {**own_recipe(name, manager), **(manager.metadata or {})}


def check_settings(names: Sequence[str], manager: TaskManager, given: Mapping[str, Any], *, shots: int | None) -> None:
    """Refuses what was given by flags and would reach none of the tasks: a setting that none has, and examples.

    Tasks that aren't ours may read anything, so with one of them among `names` all is let through.
    """
    recipes = [own_recipe(name, manager) for name in expand(names, manager)]
    if not recipes or any("family" not in found for found in recipes):
        return
    known = {key for found in recipes for key in (*found, *setting_names(found["family"]))}
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            raise SettingError(
                f"--metadata: none of the tasks has the setting {key!r}"
                + (f", did you mean {near[0]!r}?" if near else "")
                + f" Settings: {', '.join(sorted(known - {'family', 'version'}))}"
            )
    if shots and all((_index(manager)[name].cfg or {}).get("num_fewshot") == 0 for name in expand(names, manager)):
        raise SettingError(
            f"--num_fewshot {shots}: these tasks set num_fewshot to 0, for examples of the test would show documents "
            "their own answers; write a YAML of your own with a `fewshot_split` of other documents"
        )


def settings_read(name: str, manager: TaskManager) -> list[str] | None:
    """The names of the settings that a task of ours reads; None for another's, which may read anything."""
    recipe = own_recipe(name, manager)
    return sorted({*recipe, *setting_names(recipe["family"])}) if "family" in recipe else None


def own_metrics_of(name: str, include_path: Sequence[str]) -> dict[str, OwnMetric]:
    """The functions among the metrics of a task's YAML, found in our folders and `include_path`."""
    entry = _index(task_manager([name], metadata={}, include_path=include_path))[name]
    listed = load_yaml(entry.yaml_path, resolve_func=True).get("metric_list") if entry.yaml_path else None
    return own_metrics(listed or ())


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
