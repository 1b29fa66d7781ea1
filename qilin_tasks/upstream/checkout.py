"""Static task folders into a checkout of lm-evaluation-harness, and their rows in its table of tasks."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from qilin_tasks.errors import QilinTasksError, SettingError, unknown
from qilin_tasks.upstream.hosted import hosted
from qilin_tasks.upstream.staging import refuse_other_files, staging
from qilin_tasks.upstream.task_table import with_row


@dataclass(frozen=True)
class Folder:
    """A folder of `qilin_tasks/upstream/` as upstream gets it: its data set, and its row in the table of tasks."""

    name: str
    data: str
    description: str
    languages: str = "Chinese"


FOLDERS = {
    folder.name: folder
    for folder in (
        Folder("qilin", "qilin-dqa", "Questions of Xiaohongshu users answered with and without retrieved notes."),
        Folder("qilin_ranking", "qilin-ranking", "Xiaohongshu's search results and recommendations, ranked by clicks."),
    )
}
_OWNER = re.compile(r"[\w][\w.-]{0,95}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PROJECT = re.compile(r"""^name *= *["']lm[-_]eval["']""", re.MULTILINE)
_REVISION = "dataset_kwargs:\n  revision: REVISION\n"


def folder_names(text: str) -> tuple[str, ...]:
    """`qilin` as names, each once; SettingError for one that is no folder."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names or (text,):
        if name not in FOLDERS:
            raise unknown("folder", name, FOLDERS)
    return names


def write_upstream(
    checkout: Path, names: Sequence[str], *, dataset: str, revision: str | None = None, replace: bool = False
) -> list[Path]:
    """Write the folders and their rows into a checkout; returns the folders, after the checkout's formatter ran.

    `dataset`: the owner of the data sets on the hub, at commit `revision`, or a folder of `publish-docs`.
    QilinTasksError, with nothing written, for no checkout, other files in the way and documents that lack; and, with
    all written, for what the checkout's linter finds.
    """
    tasks = tasks_of(checkout)
    texts = {name: folder_files(FOLDERS[name], dataset=dataset, revision=revision) for name in names}
    for name in names:
        refuse_other_files(tasks / name, texts[name], replace=replace)
    table = (tasks / "README.md").read_text(encoding="utf-8")
    for name in names:
        table = with_row(table, name=name, description=FOLDERS[name].description, languages=FOLDERS[name].languages)
    with staging() as staged:
        for name in names:
            place = staged.folder(tasks / name)
            for file, text in texts[name].items():
                (place / file).write_text(text, encoding="utf-8")
        staged.file(tasks / "README.md", table)
    written = [tasks / name for name in names]
    run_formatter(checkout, written)
    return written


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


def folder_files(folder: Folder, *, dataset: str, revision: str | None) -> dict[str, str]:
    """The files of a folder by name, with the data set's place and revision filled in."""
    source = files("qilin_tasks.upstream").joinpath(folder.name)
    texts = {file.name: file.read_text(encoding="utf-8") for file in source.iterdir() if file.is_file()}
    path = dataset_path(folder, dataset=dataset)
    if revision is not None and not _COMMIT.fullmatch(revision):
        raise SettingError(f"revision {revision!r}: give the 40 hex digits of the commit that `hf upload` printed")
    local = Path(path).is_absolute()
    if local and revision is not None:
        raise SettingError(f"revision {revision!r}: the local data set {path} has none; name the owner of the upload")
    pinned = _REVISION.replace("REVISION", revision) if revision else ""
    return {name: text.replace(_REVISION, pinned).replace(f"OWNER/{folder.data}", path) for name, text in texts.items()}


def dataset_path(folder: Folder, *, dataset: str) -> str:
    """`OWNER/NAME` on the hub, or the local data set's folder. QilinTasksError where that lacks a config."""
    place = Path(dataset).expanduser()
    if not place.is_dir():
        if not _OWNER.fullmatch(dataset):
            raise QilinTasksError(
                f"dataset {dataset!r}: neither an owner on the hub (letters, digits, - _ .) nor a folder that "
                "`qilin-tasks publish-docs` wrote"
            )
        return f"{dataset}/{folder.data}"
    place = place.resolve() / folder.data
    missing = [name for name in hosted(folder.data).configs if not any((place / name).glob("test-*.parquet"))]
    if missing:
        raise QilinTasksError(
            f"{place} has no documents of {', '.join(missing)}: run qilin-tasks publish-docs {dataset} --sets "
            f"{folder.data} (it says what is missing), or name the owner of the uploaded data set"
        )
    return str(place)


def run_formatter(checkout: Path, folders: Sequence[Path]) -> None:
    """`ruff check --fix` and `ruff format` with the checkout's configuration, where there is a ruff.

    QilinTasksError where the linter finds what it can't mend.
    """
    ruff = shutil.which("ruff")
    if ruff is None:
        return
    paths = [str(folder) for folder in folders]
    for command in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        ran = subprocess.run([ruff, *command, *paths], cwd=checkout, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise QilinTasksError(f"ruff {' '.join(command)} in {checkout}: {ran.stdout}{ran.stderr}")
