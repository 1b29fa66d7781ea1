"""BM25 over characters within the list of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from qilin_tasks.ranking.okapi import EPSILON, K1, B, okapi_scores
from qilin_tasks.systems.system import Exposed, SystemSettings
from qilin_tasks.text.notes import plain


class ListBM25:
    """The scores of the tasks' baseline `first_stage`: *a* BM25 row, not shown to be Table 10's."""

    reads_notes: ClassVar[bool] = True
    needs: ClassVar[str | None] = None

    def __init__(self, settings: SystemSettings) -> None:
        del settings

    def recipe(self) -> Mapping[str, str | int]:
        return {"bm25": f"okapi-chars-k1={K1}-b={B}-eps={EPSILON}"}

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        return [
            [*okapi_scores(plain(one.query).replace("\n", " "), [note.text for note in one.notes])] for one in requests
        ]
