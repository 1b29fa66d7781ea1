"""What is carried upstream: a table of folders, and our YAML read for which tasks and groups belong to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qilin_tasks import tasks_folder
from qilin_tasks.errors import unknown


@dataclass(frozen=True)
class Folder:
    """One folder with one `utils.py`. `settings` are the defaults of a base file that scoring still reads upstream."""

    path: str
    template: str
    bases: tuple[str, ...]
    classes: tuple[str, ...]
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """A README, its folders, and the row for upstream's table; `documents` is the data set that its YAML names."""

    folders: tuple[Folder, ...]
    documents: str
    description: str
    languages: str
    tag: str


BERTSCORE = ("bertscore", "bertscore_model", "bertscore_layer", "bertscore_device", "bertscore_batch_size")
FAMILIES: dict[str, Family] = {
    "qilin": Family(
        folders=(
            Folder("dqa", "qilin_dqa.py.in", ("_dqa_yaml",), ("DQATask",), BERTSCORE),
            Folder("ranking", "qilin_ranking.py.in", ("_ranking_yaml",), ("ListwiseTask", "PointwiseTask")),
        ),
        documents="qilin-documents",
        description="Questions of Xiaohongshu users answered with and without retrieved notes, and the ranking of "
        "search results and recommendations.",
        languages="Chinese",
        tag="qilin",
    ),
    "reqa": Family(
        folders=(
            Folder(
                "",
                "reqa.py.in",
                ("_reqa_listwise_yaml", "_reqa_likelihood_yaml"),
                ("ListwiseTask", "LikelihoodTask"),
                ("direction",),
            ),
        ),
        documents="reqa-documents",
        description="Retrieval question answering: BM25's candidate sentences of reading sets ranked by a list or by "
        "likelihood.",
        languages="English, Chinese, Thai",
        tag="reqa_rerank",
    ),
}


@dataclass(frozen=True)
class TaskFile:
    """One YAML of ours; `config` is its content, over that of its base file for a task."""

    path: Path
    name: str
    config: dict[str, Any]

    @property
    def is_group(self) -> bool:
        return "group" in self.config

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.config["task"]) if self.is_group else ()


def family(name: str) -> Family:
    """The family of that name; SettingError with the choices for another one."""
    if name not in FAMILIES:
        raise unknown("family", name, FAMILIES)
    return FAMILIES[name]


def carried(name: str, *, root: Path | None = None) -> list[tuple[Folder, list[TaskFile]]]:
    """The tasks and groups of each folder of a family; a group goes with its members, one with others is left out."""
    files = _task_files((root or tasks_folder()) / name)
    chosen = []
    for folder in family(name).folders:
        inside = {
            file.name: file
            for file in files
            if file.config.get("include") in folder.bases
            and str(file.config.get("class", "")).rpartition(".")[2] in folder.classes
        }
        groups = [file for file in files if file.is_group]
        while fitting := [g for g in groups if g.name not in inside and inside.keys() >= set(g.members)]:
            inside.update({group.name: group for group in fitting})
        chosen.append((folder, [inside[key] for key in sorted(inside)]))
    return chosen


def carried_tasks(name: str) -> list[str]:
    """The tasks (not the groups) of a family that go upstream, by name."""
    return sorted(file.name for _, files in carried(name) for file in files if not file.is_group)


def _task_files(folder: Path) -> list[TaskFile]:
    files = []
    for path in sorted(folder.glob("*.yaml")):
        config = read_yaml(path)
        if "include" in config:
            config = {**read_yaml(folder / config["include"]), **config}
        files.append(TaskFile(path, str(config.get("group") or config["task"]), config))
    return files


class _Loader(yaml.SafeLoader):
    """YAML in which `!function a.b.C` is the text `a.b.C`."""


_Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file of ours, with functions as their dotted names."""
    return dict(yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader))  # noqa: S506 (a safe loader)


def family_names(text: str) -> Sequence[str]:
    """`qilin,reqa` as names; SettingError for one that is no family."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names or [text]:
        family(name)
    return names
