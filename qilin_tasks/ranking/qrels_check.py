"""Official qrels beside the rows' own clicks: a release in which they were shifted gave everybody metrics near zero."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from qilin_tasks.errors import DataError
from qilin_tasks.ranking.requests import Request
from qilin_tasks.sources.runs import Qrels

logger = logging.getLogger(__name__)

TOLERATED = 0.01
_SHIFTS = tuple(sorted(range(-100, 101), key=abs))[1:]


def check_qrels(requests: Sequence[Request], qrels: Qrels, *, where: str) -> int:
    """The number of requests whose clicks aren't the notes of their row number in the qrels.

    More than 1 % raises a DataError that names the shift, or the other id, under which the two agree.
    """
    judged: dict[int, set[int]] = {}
    for query, note in zip(qrels.query_ids.tolist(), qrels.candidate_ids.tolist(), strict=True):
        judged.setdefault(query, set()).add(note)
    differing = [r for r in requests if judged.get(r.row, set()) != r.clicked]
    if len(differing) > TOLERATED * len(requests):
        first = differing[0]
        raise DataError(
            f"{where}: the clicks of {len(differing)} of {len(requests)} requests differ from these qrels (first: row "
            f"{first.row} has {sorted(first.clicked)[:5]}, the qrels {sorted(judged.get(first.row, ()))[:5]}); "
            f"{_explanation(requests, judged)}. Labels come from the rows; leave `qrels` out, or take the file of this "
            "release"
        )
    if differing:
        logger.warning(
            "%s: the clicks of %d of %d requests differ from these qrels (rows %s); the rows' clicks are used",
            where,
            len(differing),
            len(requests),
            ", ".join(str(request.row) for request in differing[:10]),
        )
    return len(differing)


def _explanation(requests: Sequence[Request], judged: Mapping[int, set[int]]) -> str:
    def agreeing(key: Callable[[Request], int]) -> int:
        return sum(judged.get(key(request), set()) == request.clicked for request in requests)

    candidates: list[tuple[int, str]] = [
        (agreeing(lambda request: request.request_id), "they agree by the request's id, not by the row number")
    ]
    for shift in _SHIFTS:
        agree = agreeing(lambda request, shift=shift: request.row + shift)  # type: ignore[misc]
        candidates.append((agree, f"they agree when the row number is shifted by {shift:+d}"))
    most, text = max(candidates, key=lambda candidate: candidate[0])
    if most <= len(requests) / 2:
        return "no shift of up to 100 rows and no other id explains it: they are of different releases"
    return f"{text} ({most} of {len(requests)})"
