"""A run file as rankings by query, with what names it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.sources.runs import read_run

Rankings = dict[Any, list[tuple[Any, float]]]


def read_trec(path: Path) -> tuple[Rankings, dict[str, Any]]:
    """A TREC run: rankings by query, a higher score first and equal scores in the file's order, and its recipe."""
    from qilin_tasks.sources.parquet import file_digest

    stored = read_run(path)
    _check_scores(path, stored.scores)
    found: dict[Any, list[tuple[Any, float]]] = {}
    for query, candidate, score in zip(
        stored.query_ids.tolist(), stored.candidate_ids.tolist(), stored.scores.tolist(), strict=True
    ):
        found.setdefault(query, []).append((candidate, score))
    ordered = {query: sorted(ranking, key=lambda item: -item[1]) for query, ranking in found.items()}
    return ordered, {"trec": stored.name, "sha256": file_digest(path).hex()[:16]}


def _check_scores(path: Path, scores: NDArray[np.float64]) -> None:
    """DataError with the line of the first score that is nan or infinite."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if not len(bad):
        return
    with (
        gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig") as file
    ):
        lines = [number for number, line in enumerate(file, start=1) if line.strip()]
    # A CSV may have a header.
    row = int(bad[0]) + len(lines) - len(scores)
    raise DataError(
        f"{path}, line {lines[row]}: score {scores[bad[0]]} is no finite number ({len(bad)} of {len(scores)} are not); "
        "make the run again"
    )
