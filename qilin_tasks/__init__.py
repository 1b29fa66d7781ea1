"""Qilin and ReQA as tasks of lm-evaluation-harness."""

from pathlib import Path

__version__ = "0.1.0"


def tasks_folder() -> Path:
    """The folder with the task YAML, for the harness's `--include_path`.

    An installed wheel carries it inside the package, a checkout beside it.
    """
    packaged = Path(__file__).parent / "_lm_eval_tasks"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "lm_eval_tasks"
