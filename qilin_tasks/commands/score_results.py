"""A scored run as the harness writes results: a results and a samples file, which the report reads like a model's."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qilin_tasks import __version__
from qilin_tasks.files import write_whole
from qilin_tasks.signature import digest, signature

if TYPE_CHECKING:
    from qilin_tasks.metrics.ranking_runs import RunScores
    from qilin_tasks.sources.runs import Qrels, Run

TASKS = {"search_test": "qilin_search_run", "recommendation_test": "qilin_recommendation_run", "dqa": "qilin_dqa_run"}
SOURCE = "qilin-tasks score"
SHOWN = 100


def write_results(
    scores: RunScores,
    run: Run,
    qrels: Qrels,
    *,
    config: str,
    name: str,
    labels: str,
    run_file: Path,
    rows: int | None,
    out: Path,
    made: Mapping[str, object] | None = None,
) -> Path:
    """Write `results_<time>.json` and its samples file into a folder named for the system; returns the former's path.

    Metrics are named as the tasks name them, one sample a query; both files appear whole or not at all. `made` says how
    the run came about, where that is known: it is signed.
    """
    made = made or {}
    now = time.time()
    stamp = datetime.fromtimestamp(now, tz=timezone.utc).strftime("%Y-%m-%dT%H-%M-%S.%f")
    task = TASKS[config]
    recipe = signature(
        "qilin-run",
        {
            "config": config,
            "rows": rows or "all",
            "run": _file_digest(run_file),
            **made,
            "labels": digest([qrels.query_ids.tolist(), qrels.candidate_ids.tolist()]),
            "n": len(scores.query_ids),
            "v": "1.0",
            "code": __version__,
        },
    )
    metadata = {"version": 1.0, "config": config, "labels": labels, "run": str(run_file), "signature": recipe}
    if made:
        metadata["made"] = dict(made)
    results: dict[str, Any] = {
        "results": {task: {"alias": task, **_aggregates(scores)}},
        "group_subtasks": {task: []},
        "configs": {task: {"task": task, "metadata": metadata}},
        "versions": {task: 1.0},
        "n-shot": {task: 0},
        "higher_is_better": {task: dict.fromkeys(scores.values, True)},
        "n-samples": {task: {"original": len(scores.query_ids), "effective": len(scores.query_ids)}},
        "config": {"model": SOURCE, "model_args": {"run": str(run_file), "name": name}},
        "date": now,
        "lm_eval_version": f"none ({SOURCE} {__version__})",
        "model_source": SOURCE,
        "model_name": name,
        # What a system is, is no other question than what the rest of the board was asked.
        "compare": {"system_parts": ["run", *made]},
        "queries_without_labels": scores.unjudged,
        "queries_without_ranking": scores.unranked,
    }
    folder = out / folder_name(name)
    # The results file comes last: who sees it finds its samples.
    write_whole(folder / f"samples_{task}_{stamp}.jsonl", (f"{line}\n" for line in _samples(scores, run, qrels)))
    path = folder / f"results_{stamp}.json"
    write_whole(path, json.dumps(results, indent=2, ensure_ascii=False) + "\n")
    return path


def folder_name(name: str) -> str:
    """The folder of a system of that name."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "run"


def _aggregates(scores: RunScores) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for measure, per_query in scores.values.items():
        n = len(per_query)
        values[f"{measure},none"] = float(per_query.mean())
        values[f"{measure}_stderr,none"] = float(per_query.std(ddof=1) / np.sqrt(n)) if n > 1 else "N/A"
    return values


def _samples(scores: RunScores, run: Run, qrels: Qrels) -> Iterator[str]:
    """One line a query, with the keys of the harness's samples and in their order."""
    order = np.lexsort((run.candidate_ids, -run.scores, run.query_ids))
    ranked = _by_query(run.query_ids[order], run.candidate_ids[order])
    relevant = _by_query(qrels.query_ids, qrels.candidate_ids)
    for position, query in enumerate(scores.query_ids.tolist()):
        values = {measure: float(per_query[position]) for measure, per_query in scores.values.items()}
        best = ranked[query][:SHOWN]
        sample = {
            "doc_id": position,
            "doc": {"doc_key": query, "relevant": relevant[query], "n_ranked": len(ranked[query])},
            "target": relevant[query],
            "arguments": {},
            "resps": [[best]],
            "filtered_resps": [best],
            "filter": "none",
            "metrics": list(values),
            "doc_hash": digest([query, relevant[query]], length=64),
            **values,
        }
        yield json.dumps(sample, ensure_ascii=False)


def _by_query(queries: Any, candidates: Any) -> dict[Any, list[Any]]:
    grouped: dict[Any, list[Any]] = {}
    for query, candidate in zip(queries.tolist(), candidates.tolist(), strict=True):
        grouped.setdefault(query, []).append(candidate)
    return grouped


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
