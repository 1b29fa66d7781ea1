"""The harness's task index with our folders in it, opened the quick way where it is enough."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval.tasks import TaskManager

from qilin_tasks import tasks_folder
from qilin_tasks.errors import SettingError

#: Names that only our folders can hold: the harness's index is not read for them.
OUR_PREFIXES = ("qilin_", "reqa_")


def task_manager(names: Sequence[str], *, metadata: Mapping[str, Any], include_path: Sequence[str] = ()) -> TaskManager:
    """A TaskManager that knows all `names`: our folders and `include_path`, the harness's thousands only where needed.

    Raises SettingError for a name that is no task, group or tag.
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
