"""Tables in the published layout, written whole or not at all."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any


def write_table(table: Any, folder: Path, *, shards: int = 1, row_group_size: int = 1000) -> list[Path]:
    """Write a pyarrow table as `<folder>/train-0000x-of-0000y.parquet`; returns the paths, in order."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    bounds = [table.num_rows * number // shards for number in range(shards + 1)]
    paths = []
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        path = folder / f"train-{number:05d}-of-{shards:05d}.parquet"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            pq.write_table(table.slice(start, end - start), temporary, row_group_size=row_group_size)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        paths.append(path)
    return paths
