"""What the YAML files name: `Task` for the harness that is there, chosen by what it can do, and `load`."""

from __future__ import annotations

import importlib.util

from qilin_tasks.harness.core import load

if importlib.util.find_spec("lm_eval.scorers") is None:
    from qilin_tasks.harness.task_v04 import Task
else:
    from qilin_tasks.harness.task_v05 import Task  # type: ignore[assignment]

__all__ = ["Task", "load"]
