"""What the YAML files name: `Task` for the harness that is there, chosen by what it can do, and `load`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging

from qilin_tasks.errors import DependencyError
from qilin_tasks.harness.core import load
from qilin_tasks.harness.location import untested

_note = untested(importlib.metadata.version("lm_eval"))
if _note:
    logging.getLogger(__name__).warning(_note)
try:
    if importlib.util.find_spec("lm_eval.scorers") is None:
        from qilin_tasks.harness.task_v04 import Task
    else:
        from qilin_tasks.harness.task_v05 import Task  # type: ignore[assignment]
except ImportError as error:
    if not _note:
        raise
    raise DependencyError(f"{_note} ({error})") from error

__all__ = ["Task", "load"]
