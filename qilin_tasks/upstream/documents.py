"""The ready documents of a family as a data set: parquet by task, a card, checksums; nothing is uploaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import QilinTasksError
from qilin_tasks.upstream.card import Config, card
from qilin_tasks.upstream.families import carried_tasks, family
from qilin_tasks.upstream.staging import refuse_other_files, staging

CHECKSUMS = "SHA256SUMS"
# The documents don't depend on these; without them no model or dictionary has to be loaded.
_WITHOUT_SCORING = {"bertscore": "off", "meteor": "off"}


def read_documents(tasks: Sequence[str], *, metadata: Mapping[str, Any]) -> list[Config]:
    """The documents of each task, as the task itself loads them. QilinTasksError where contexts or data are missing."""
    from tqdm import tqdm

    from qilin_tasks.harness import task_manager as loading

    manager = loading.task_manager((), metadata={**metadata, **_WITHOUT_SCORING})
    configs = []
    for name in tqdm(tasks, desc="documents", unit="task", disable=len(tasks) < 2):
        task = loading.load(name, manager)
        table = task.dataset["test"].data.table.combine_chunks().replace_schema_metadata(None)
        recipe = {k: v for k, v in loading.recipe(name, manager).items() if k not in ("version", "signature")}
        configs.append(Config(name, table, recipe, str(task.config.metadata["signature"])))
    return configs


def publish_documents(
    folder: Path, name: str, *, tasks: Sequence[str] | None = None, metadata: Mapping[str, Any], replace: bool = False
) -> Path:
    """Write a family's data set below `folder` and return its place; whole or not at all.

    `metadata`: settings over those of the YAML. QilinTasksError for missing contexts and for other files in the way.
    """
    target = folder / family(name).documents
    if folder.exists() and not folder.is_dir():
        raise QilinTasksError(f"{folder} is a file: give a folder, which is made where there is none")
    refuse_other_files(target, None, replace=replace)
    configs = read_documents(tasks or carried_tasks(name), metadata=metadata)
    with staging() as staged:
        place = staged.folder(target)
        for config in configs:
            write_config(place, config)
        (place / "README.md").write_text(card(name, configs), encoding="utf-8")
        (place / CHECKSUMS).write_text(checksums(place), encoding="utf-8")
    return target


def write_config(place: Path, config: Config) -> None:
    """`<task>/test-00000-of-00001.parquet`, as the hub and `datasets` name a split's only shard."""
    import pyarrow.parquet as pq

    path = place / config.task / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    pq.write_table(config.table, path, row_group_size=1000)


def checksums(place: Path) -> str:
    """The lines that `sha256sum -c SHA256SUMS` reads, for every other file."""
    lines = []
    for path in sorted(path for path in place.rglob("*") if path.is_file() and path.name != CHECKSUMS):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {path.relative_to(place).as_posix()}\n")
    return "".join(lines)
