"""Tables in the published layout, written whole or not at all."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from qilin_tasks.files import replacing


def write_table(table: Any, folder: Path, *, shards: int = 1, row_group_size: int = 1000) -> list[Path]:
    """Write a pyarrow table as `<folder>/train-0000x-of-0000y.parquet`; returns the paths, in order."""
    import pyarrow.parquet as pq

    bounds = [table.num_rows * number // shards for number in range(shards + 1)]
    paths = []
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        path = folder / f"train-{number:05d}-of-{shards:05d}.parquet"
        part = table.slice(start, end - start)
        with replacing(path) as [name]:
            pq.write_table(part, name, row_group_size=row_group_size)
        paths.append(path)
    return paths
