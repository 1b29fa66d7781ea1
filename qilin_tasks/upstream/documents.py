"""Ready documents as a data set: parquet by config, a card, checksums of the data; nothing is uploaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import QilinTasksError
from qilin_tasks.upstream.card import CARD, Config, card
from qilin_tasks.upstream.hosted import hosted
from qilin_tasks.upstream.package import is_sample, read_task
from qilin_tasks.upstream.staging import refuse_other_files, staging

CHECKSUMS = "SHA256SUMS"
# A constant of a way of asking, which its prompt needs and the documents don't.
_CONSTANT = "direction"


def read_config(name: str, tasks: Sequence[str], *, metadata: Mapping[str, Any]) -> Config:
    """The documents that the first of the tasks asks about, and how many of them differ for each of the others."""
    first, *others = (read_task(task, metadata=metadata) for task in tasks)
    table = _documents(first.table)
    differing = {
        task: _differing(table, _documents(other.table)) for task, other in zip(tasks[1:], others, strict=True)
    }
    return Config(name, tuple(tasks), table, first.recipe, first.sources, differing)


def _documents(table: Any) -> Any:
    return table.drop_columns([_CONSTANT]) if _CONSTANT in table.column_names else table


def _differing(ours: Any, theirs: Any) -> int:
    if ours.equals(theirs):
        return 0
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    return sum(mine != other for mine, other in pairs)


def publish_documents(
    folder: Path,
    name: str,
    *,
    metadata: Mapping[str, Any],
    configs: Sequence[str] | None = None,
    replace: bool = False,
) -> Path:
    """Write a data set below `folder` and return its place; whole or not at all.

    `configs`: some of its configs (default: all); `metadata`: settings over those of the YAML. QilinTasksError for
    missing contexts and for other files in the way.
    """
    from tqdm import tqdm

    chosen, target = hosted(name), folder / name
    if folder.exists() and not folder.is_dir():
        raise QilinTasksError(f"{folder} is a file: give a folder, which is made where there is none")
    refuse_other_files(target, None, replace=replace)
    wanted = {key: tasks for key, tasks in chosen.configs.items() if configs is None or key in configs}
    progress = tqdm(wanted.items(), desc=name, unit="config", disable=len(wanted) < 2)
    written = [read_config(key, tasks, metadata={**chosen.settings, **metadata}) for key, tasks in progress]
    with staging() as staged:
        place = staged.folder(target)
        for config in written:
            write_config(place, config)
        (place / CHECKSUMS).write_text(checksums(place), encoding="utf-8")
        (place / CARD).write_text(card(chosen, written, sample=is_sample(name)), encoding="utf-8")
    return target


def write_config(place: Path, config: Config) -> None:
    """`<config>/test-00000-of-00001.parquet`, as the hub and `datasets` name a split's only shard."""
    import pyarrow.parquet as pq

    path = place / config.name / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    pq.write_table(config.table, path, row_group_size=1000)


def checksums(place: Path) -> str:
    """The lines that `sha256sum -c SHA256SUMS` reads, for the data: the card may be edited on the hub."""
    lines = []
    for path in sorted(place.rglob("*.parquet")):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {path.relative_to(place).as_posix()}\n")
    return "".join(lines)
