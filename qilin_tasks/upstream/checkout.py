"""A family's folder in a checkout of lm-evaluation-harness: its files, and the row in the table of tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from qilin_tasks import tasks_folder
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.upstream.assemble import assemble
from qilin_tasks.upstream.families import Folder, TaskFile, carried, carried_tasks, family
from qilin_tasks.upstream.readme import readme
from qilin_tasks.upstream.staging import refuse_other_files, staging
from qilin_tasks.upstream.task_table import with_row
from qilin_tasks.upstream.task_yaml import base_yaml, task_yaml

#: Whose data sets the YAML names where nothing else is said; whoever uploads them says `--dataset OWNER`.
OWNER = "qilin-tasks"
_PROJECT = re.compile(r"""^name *= *["']lm[-_]eval["']""", re.MULTILINE)


def write_upstream(checkout: Path, names: Sequence[str], *, dataset: str = OWNER, replace: bool = False) -> list[Path]:
    """Write the families' folders and their rows into a checkout; returns the folders.

    `dataset`: the owner of the data sets on the hub, or a folder of `publish-docs`. Nothing is written after an error:
    QilinTasksError for no checkout, for other files in the way, and for documents that `dataset` lacks.
    """
    tasks = tasks_of(checkout)
    wanted = {name: folder_files(name, dataset=dataset_of(name, dataset)) for name in names}
    for name, texts in wanted.items():
        refuse_other_files(tasks / name, texts, replace=replace)
    table = (tasks / "README.md").read_text(encoding="utf-8")
    for name in names:
        chosen = family(name)
        table = with_row(table, name=name, description=chosen.description, languages=chosen.languages)
    with staging() as staged:
        for name, texts in wanted.items():
            place = staged.folder(tasks / name)
            for path, text in texts.items():
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_text(text, encoding="utf-8")
        staged.file(tasks / "README.md", table)
    return [tasks / name for name in names]


def tasks_of(checkout: Path) -> Path:
    """`lm_eval/tasks` of a checkout; QilinTasksError for anything else."""
    project, tasks = checkout / "pyproject.toml", checkout / "lm_eval" / "tasks"
    is_project = project.is_file() and _PROJECT.search(project.read_text(encoding="utf-8", errors="replace"))
    if not is_project or not (tasks / "README.md").is_file():
        raise QilinTasksError(
            f"{checkout} is no checkout of lm-evaluation-harness (a pyproject.toml named lm_eval beside "
            "lm_eval/tasks/README.md): git clone https://github.com/EleutherAI/lm-evaluation-harness and give that "
            "folder; `qilin-tasks install` is for the harness that this Python imports"
        )
    return tasks


def dataset_of(name: str, dataset: str) -> str:
    """The `dataset_path` of a family. QilinTasksError where a local one lacks the documents of a task."""
    folder = Path(dataset).expanduser()
    if not folder.is_dir():
        if not re.fullmatch(r"[\w][\w.-]{0,95}", dataset):
            raise QilinTasksError(
                f"dataset {dataset!r}: neither an owner on the hub (letters, digits, - _ .) nor a folder that "
                "`qilin-tasks publish-docs` wrote"
            )
        return f"{dataset}/{family(name).documents}"
    place = folder.resolve() / family(name).documents
    missing = [task for task in carried_tasks(name) if not any((place / task).glob("test-*.parquet"))]
    if missing:
        raise QilinTasksError(
            f"{place} has no documents of {', '.join(missing)}: their contexts were never computed. Run "
            f"qilin-tasks publish-docs {dataset} --tasks {name} (it says what is missing), or name the owner of the "
            "uploaded data set"
        )
    return str(place)


def folder_files(name: str, *, dataset: str) -> dict[str, str]:
    """Every file of a family's folder by its path in it."""
    texts = {"README.md": readme(name, dataset=dataset)}
    for folder, task_files in carried(name):
        texts |= {
            f"{folder.path}/{path}".lstrip("/"): text
            for path, text in _files(name, folder, task_files, dataset).items()
        }
    return texts


def _files(name: str, folder: Folder, task_files: Sequence[TaskFile], dataset: str) -> dict[str, str]:
    source = tasks_folder() / name
    texts = {"utils.py": python(folder)}
    for base in folder.bases:
        texts[base] = base_yaml((source / base).read_text(encoding="utf-8"), dataset=dataset)
    for file in task_files:
        plain = file.path.read_text(encoding="utf-8")
        texts[file.path.name] = plain if file.is_group else task_yaml(file, folder, tag=family(name).tag)
    return texts


def python(folder: Folder) -> str:
    """The folder's `utils.py`, assembled from this package's own definitions."""
    return assemble(template(folder.template), values={"TASK": template("task.py.in").rstrip()})


def template(name: str) -> str:
    """A file of `templates/`."""
    return files("qilin_tasks.upstream").joinpath("templates").joinpath(name).read_text(encoding="utf-8")
