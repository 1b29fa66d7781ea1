"""A system over the first requests of a config: scores in saved pieces, then a TREC run with its recipe beside it."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks import __version__
from qilin_tasks.errors import DataError
from qilin_tasks.files import locked, write_whole
from qilin_tasks.ranking.requests import Request, read_requests
from qilin_tasks.retrieval.workspace import close_work, open_work
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.sources.runs import write_run
from qilin_tasks.systems.system import Exposed, System

logger = logging.getLogger(__name__)

#: Requests scored and saved at a time.
PIECE = 32
Ranking = list[tuple[int, float]]


def rank(
    source: QilinSource,
    system: System,
    *,
    config: str,
    rows: int | None,
    name: str,
    out: Path,
    overwrite: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Ranks the candidates of the first `rows` rows and writes the TREC run `out`; returns its recipe.

    Every PIECE requests are saved, so that a stopped run goes on; a finished run of the same recipe is left as it is.
    DataError for one of another recipe unless `overwrite`, and for scores that are no numbers.
    """
    recipe = {
        "name": name,
        "config": config,
        "rows": rows,
        "system": dict(system.recipe()),
        "data": [source.fingerprint(config), source.fingerprint("notes")],
        "code": __version__,
    }
    beside = recipe_path(out)
    with locked(out):
        if out.exists() and not overwrite:
            known = json.loads(beside.read_text("utf-8")) if beside.is_file() else None
            if known == recipe:
                return recipe
            changed = [key for key in recipe if known is None or known.get(key) != recipe[key]]
            raise DataError(
                f"{out}: made by another recipe (different: {', '.join(changed)}); choose another --out or --name, or "
                "--overwrite"
            )
        requests = read_requests(source, config, rows=rows)
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = open_work(out, recipe)
        scores = _scores(source, requests, system, folder=folder, progress=progress)
        rankings = {request.row: _ranking(request, values) for request, values in zip(requests, scores, strict=True)}
        _check(rankings, requests)
        write_whole(beside, json.dumps(recipe, ensure_ascii=False, indent=1))
        write_run(out, rankings.items(), name=name)
        close_work(out)
    return recipe


def recipe_path(out: Path) -> Path:
    """Where the recipe of a run stands."""
    return out.with_name(f"{out.name}.json")


def _scores(
    source: QilinSource, requests: Sequence[Request], system: System, *, folder: Path, progress: bool
) -> list[list[float]]:
    """A number for each candidate of each request, NaN for what the system leaves out."""
    from tqdm import tqdm

    pieces = [requests[start : start + PIECE] for start in range(0, len(requests), PIECE)]
    files = [folder / f"scores-{number:05d}.npy" for number in range(len(pieces))]
    # One pass over the notes serves all that is left to do.
    left = {
        note
        for piece, file in zip(pieces, files, strict=True)
        if not file.is_file()
        for one in piece
        for note in one.candidates
    }
    notes = source.notes(left) if system.reads_notes and left else {}
    found: list[list[float]] = []
    for piece, file in zip(tqdm(pieces, desc="ranking", unit=" pieces", disable=not progress), files, strict=True):
        if not file.is_file():
            exposed = [
                Exposed(
                    one.row,
                    one.query or "",
                    one.candidates,
                    tuple(notes[note] for note in one.candidates) if system.reads_notes else (),
                )
                for one in piece
            ]
            values = [
                math.nan if value is None else _number(value, one)
                for one, scored in zip(piece, system.score(exposed), strict=True)
                for value in scored
            ]
            write_whole(file, lambda opened, values=values: np.save(opened, np.array(values)))  # type: ignore[misc]
        saved = iter(np.load(file, allow_pickle=False).tolist())
        found += [[next(saved) for _ in one.candidates] for one in piece]
    return found


def _number(value: float, request: Request) -> float:
    if not math.isfinite(value):
        raise DataError(f"row {request.row}: the system's score {value} is no finite number; nothing was written")
    return value


def _ranking(request: Request, scores: Sequence[float]) -> Ranking:
    """Best first; equal scores by id, which the metrics break by a hash of their own."""
    pairs = [(note, score) for note, score in zip(request.candidates, scores, strict=True) if not math.isnan(score)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def _check(rankings: Mapping[int, Ranking], requests: Sequence[Request]) -> None:
    """Says how much was left unranked. DataError where that is all."""
    candidates = sum(len(request.candidates) for request in requests)
    ranked = sum(len(ranking) for ranking in rankings.values())
    if not ranked:
        raise DataError(
            f"none of {candidates} exposed candidates is ranked: are the query ids row numbers of the config?"
        )
    if ranked < candidates:
        empty = sum(not ranking for ranking in rankings.values())
        logger.warning(
            "%d of %d exposed candidates are not ranked (%d of %d requests have none): they count as not retrieved, "
            "and requests without any are left out of the means, as the official code does",
            candidates - ranked,
            candidates,
            empty,
            len(requests),
        )
