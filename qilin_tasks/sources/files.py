"""Where a config's files lie in a folder: published parquet layout or CSV exports."""

from __future__ import annotations

import re
from pathlib import Path

from qilin_tasks.errors import DataError

SUFFIXES = (".parquet", ".csv")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")


def patterns(config: str) -> list[str]:
    """The glob patterns of a config's files inside a repository."""
    return [
        f"{prefix}{config}{middle}{suffix}" for prefix in ("", "data/") for middle in ("/*", "") for suffix in SUFFIXES
    ]


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def config_files(root: Path, config: str) -> list[Path]:
    """The files of a config in shard order: all parquet, or all CSV; an empty list when there are none.

    Looked for in `<config>/`, `data/<config>/`, `<config>.parquet` and `<config>.csv`, in that order, parquet first.
    """
    for suffix in SUFFIXES:
        for base in (root, root / "data"):
            folder = base / config
            found = sorted(folder.glob(f"*{suffix}"), key=_natural) if folder.is_dir() else []
            found = [path for path in found if path.is_file() and not path.name.startswith((".", "_"))]
            if not found and (base / f"{config}{suffix}").is_file():
                found = [base / f"{config}{suffix}"]
            if found:
                _check_shards(found, config)
                return found
    return []


def _check_shards(found: list[Path], config: str) -> None:
    """A name like `train-00002-of-00005` says how many there must be."""
    seen: dict[int, set[int]] = {}
    for path in found:
        if match := _SHARD.search(path.name):
            seen.setdefault(int(match[2]), set()).add(int(match[1]))
    if not seen:
        return
    if len(seen) > 1:
        raise DataError(
            f"{found[0].parent}: shards of {len(seen)} different exports of {config!r} lie together "
            f"(of {', '.join(map(str, sorted(seen)))}): keep one set and remove the other."
        )
    total, numbers = next(iter(seen.items()))
    missing = sorted(set(range(total)) - numbers)
    if missing:
        raise DataError(
            f"{found[0].parent}: {config!r} has {len(numbers)} of {total} shards; missing: "
            f"{', '.join(f'{number:05d}' for number in missing[:5])}{'…' if len(missing) > 5 else ''}. "
            "Download them again."
        )
