"""Which run is which: by the system that made it, and by its content."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError

logger = logging.getLogger(__name__)

# What the name of a TREC run of ours begins with.
TREC_PREFIX = "qilin-tasks-"


def system(recipe: Mapping[str, Any]) -> str:
    """The name of what made a run: the retriever, or a TREC run's own name."""
    return str(recipe.get("retriever") or str(recipe.get("trec")).removeprefix(TREC_PREFIX))


def check_finite(ranking: Iterable[tuple[Any, float]], *, query: Any, recipe: Mapping[str, Any]) -> None:
    """Raises DataError for a score that is nan or infinite."""
    for name, score in ranking:
        if not math.isfinite(score):
            raise DataError(
                f"the run by {system(recipe)!r}: query {query}, document {name}: score {score} is no finite number; "
                "make the run again"
            )


def identity(recipe: Mapping[str, Any]) -> str:
    """What tells a run from all others: a file's digest, or the digest of the recipe that made it."""
    if "sha256" in recipe:
        return str(recipe["sha256"])
    names = ("retriever", "top_k", "parameters", "queries", "corpus_fingerprint")
    text = json.dumps({name: recipe.get(name) for name in names}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def check_trained_runs(ranker: Path, recipe: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> None:
    """Raises DataError where a ranker meets the runs that it was trained on, or other retrievers than it knows."""
    trained = recipe.get("runs")
    if trained is None:
        logger.warning("%s: does not say which runs it was trained on (an older version made it)", ranker)
        return
    seen = {run["identity"] for run in trained}
    for given in inputs:
        if identity(given) in seen:
            raise DataError(
                f"{ranker}: was trained on the run by {system(given)!r} that it is to rank now, so it knows the "
                "answers; apply it to runs of other queries"
            )
    known, here = [run["system"] for run in trained], [system(given) for given in inputs]
    if known != here and len(known) == len(here):
        raise DataError(
            f"{ranker}: was trained on runs by {', '.join(known)}, in this order, not {', '.join(here)}: pass the same "
            "retrievers' runs in the same order (a TREC run's retriever is the name in its last column)"
        )
