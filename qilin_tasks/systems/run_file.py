"""A run that some other program wrote, as a system: what it says of the exposed candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from qilin_tasks.errors import DataError
from qilin_tasks.sources.runs import read_run
from qilin_tasks.systems.system import Exposed, SystemSettings


class RunFile:
    """A TREC run or a `qid,pid,score` CSV by row number; candidates that it leaves out stay unranked."""

    reads_notes: ClassVar[bool] = False
    needs: ClassVar[str | None] = "run_file"

    def __init__(self, settings: SystemSettings) -> None:
        path = Path(str(settings.run_file))
        run = read_run(path)
        if run.query_ids.dtype.kind != "i" or run.candidate_ids.dtype.kind != "i":
            raise DataError(f"{path}: query ids must be row numbers of the config, candidates note ids, both integers")
        self._scores: dict[tuple[int, int], float] = {}
        for query, note, score in zip(
            run.query_ids.tolist(), run.candidate_ids.tolist(), run.scores.tolist(), strict=True
        ):
            if (query, note) in self._scores:
                raise DataError(f"{path}: query {query} ranks candidate {note} twice: keep one row a pair")
            self._scores[query, note] = score
        self._recipe = {"run_file": hashlib.sha256(path.read_bytes()).hexdigest()[:12]}

    def recipe(self) -> Mapping[str, str | int]:
        return self._recipe

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        return [[self._scores.get((one.row, note)) for note in one.candidates] for one in requests]
