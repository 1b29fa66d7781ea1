"""A run of any system against qrels, with a guard against ids that are shifted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.metrics.ranking import QILIN_MEASURES
from qilin_tasks.metrics.ranking_runs import RunScores, evaluate_run
from qilin_tasks.ranking.requests import labels
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.sources.runs import Qrels, Run

# A ranking of exposed notes holds every clicked one, so nearly all queries of an unshifted run have a hit.
_LEAST_MATCHED = 0.5
_SHIFTS = tuple(sorted(range(-100, 101), key=abs))[1:]


def score_run(run: Run, qrels: Qrels, *, measures: Sequence[str] = QILIN_MEASURES) -> RunScores:
    """Values per query, as the official code gives them. Raises DataError for NaN, repeated pairs or shifted ids."""
    scores = evaluate_run(
        query_ids=run.query_ids,
        candidate_ids=run.candidate_ids,
        scores=run.scores,
        qrel_query_ids=qrels.query_ids,
        qrel_candidate_ids=qrels.candidate_ids,
        measures=measures,
    )
    _check_shift(run, qrels)
    return scores


def clicks(source: QilinSource, config: str) -> Qrels:
    """The clicked notes of every row of a config, by row number."""
    queries, notes = labels(source, config)
    return Qrels(np.array(queries, dtype=np.int64), np.array(notes, dtype=np.int64))


def _check_shift(run: Run, qrels: Qrels) -> None:
    columns = (run.query_ids, run.candidate_ids, qrels.query_ids, qrels.candidate_ids)
    if any(column.dtype.kind != "i" for column in columns):
        return
    clicked: dict[int, set[int]] = {}
    for query, note in zip(qrels.query_ids.tolist(), qrels.candidate_ids.tolist(), strict=True):
        clicked.setdefault(note, set()).add(query)
    # The offsets at which a row of the run would be a hit: query in the qrels minus query in the run.
    hits: dict[int, set[int]] = {}
    for query, note in zip(run.query_ids.tolist(), run.candidate_ids.tolist(), strict=True):
        for judged in clicked.get(note, ()):
            if abs(judged - query) <= _SHIFTS[-1]:
                hits.setdefault(judged - query, set()).add(query)
    queries = len(np.unique(run.query_ids))
    matched = len(hits.get(0, ()))
    shift, found = max(((s, len(hits.get(s, ()))) for s in _SHIFTS), key=lambda pair: pair[1])
    if matched < _LEAST_MATCHED * queries < found:
        raise DataError(
            f"only {matched} of {queries} queries of the run hold a relevant candidate, but {found} do when its query "
            f"ids are shifted by {shift:+d}: the qrels and the run count rows differently. Query ids are row numbers "
            "of the config, from 0"
        )
