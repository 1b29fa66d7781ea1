"""The embedded sample: readable YAML in the package, written once as parquet in the published layout.

`open_qilin("sample")` then reads that folder exactly as it reads a copy of the real data.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib import resources
from pathlib import Path

from qilin_tasks import __version__
from qilin_tasks.errors import DataError
from qilin_tasks.sources.files import config_files
from qilin_tasks.sources.schema import SCHEMA


def sources() -> dict[str, bytes]:
    """The sample's files in the package, by name."""
    root = resources.files("qilin_tasks") / "data" / "sample"
    found = {entry.name: entry.read_bytes() for entry in root.iterdir() if entry.name.endswith((".yaml", ".json"))}
    if "notes.yaml" not in found:
        raise DataError(f"{root}: the embedded sample is missing: install qilin-tasks again")
    return dict(sorted(found.items()))


def cache_roots() -> list[Path]:
    """Folders for what is made once, the preferred one first: QILIN_TASKS_CACHE alone where it is set."""
    base = os.environ.get("QILIN_TASKS_CACHE")
    if base:
        return [Path(base).expanduser()]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    shared = Path(tempfile.gettempdir()) / f"qilin-tasks-{os.getuid()}"
    ours = not shared.exists() or shared.stat().st_uid == os.getuid()  # anybody may have made it first
    return [home / "qilin-tasks", *([shared] if ours else [])]


def sample_folder() -> Path:
    """The folder with the sample as parquet, made on first use under QILIN_TASKS_CACHE (default ~/.cache/qilin-tasks).

    Its name carries a digest of the sources, so an updated package never reads an old copy. Raises DataError where
    no cache folder can be written.
    """
    digest = hashlib.sha256(__version__.encode())
    for name, content in sources().items():
        digest.update(name.encode() + b"\0" + content)
    name = f"sample-{digest.hexdigest()[:16]}"
    refusals = []
    for root in cache_roots():
        if _is_whole(root / name):
            return root / name
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _materialise(root, name)
        except (OSError, DataError) as error:
            refusals.append(f"{root} ({getattr(error, 'strerror', None) or error})")
    raise DataError(
        f"the sample can't be written: {'; '.join(refusals)}. Set QILIN_TASKS_CACHE to a folder that can be written."
    )


def _is_whole(folder: Path) -> bool:
    try:
        return all(config_files(folder, config) for config in SCHEMA)
    except DataError:  # a shard is missing
        return False


def _materialise(root: Path, name: str) -> Path:
    """Write into a temporary folder beside the target and rename it: the sample is there whole or not at all."""
    from qilin_tasks.sources.sample_tables import tables
    from qilin_tasks.sources.writing import write_table

    target = root / name
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root))
    try:
        for config, table in tables(sources()).items():
            write_table(table, work / config, shards=2 if config == "notes" else 1)
        if target.is_dir() and not _is_whole(target):  # a cleaner of temporary files was here
            shutil.rmtree(target)
        try:
            work.rename(target)
        except OSError:
            if not _is_whole(target):  # otherwise another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def write_sample(folder: Path) -> Path:
    """Copy the sample's parquet files into a new folder (to look at, or to change in a test)."""
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty: name a new folder")
    shutil.copytree(sample_folder(), folder, dirs_exist_ok=True)
    return folder
