"""`qilin-tasks prepare`: rankings of the notes for the rows of a config, once, for every task to read."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.files import locked
from qilin_tasks.retrieval.corpus import NotesCorpus
from qilin_tasks.retrieval.options import add_options, settings_of
from qilin_tasks.retrieval.pipeline import Recipe, Run, Settings, Task, retriever
from qilin_tasks.retrieval.run_file import read_contexts, read_recipe, write_contexts
from qilin_tasks.retrieval.run_identity import TREC_PREFIX
from qilin_tasks.retrieval.workspace import close_work, open_work
from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.sources.run_rankings import read_trec
from qilin_tasks.sources.runs import write_run
from qilin_tasks.text.analyzers import ANALYZERS

logger = logging.getLogger(__name__)

CONFIGS = ("dqa", "search_train", "search_test", "recommendation_train", "recommendation_test")
NOT_TRIGGERED = ("", "-1")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "prepare",
        help="rank the notes for every query of a config",
        description="Rank Qilin's notes for every query of a config and write a run that tasks read with the setting "
        '`contexts`: --metadata \'{"contexts": "bm25.parquet"}\'. A run that was stopped goes on where it was.',
    )
    parser.add_argument("--config", required=True, choices=CONFIGS, help="the rows to rank for")
    parser.add_argument("--data", help="sample, a folder, or a hub id (default: $QILIN_DATA, else THUIR/Qilin)")
    parser.add_argument(
        "--rows", default="answered", choices=("answered", "all"), help="dqa: rows with an answer, or all"
    )
    parser.add_argument("--limit", type=int, help="only the first rows")
    parser.add_argument("--language", default="zh", choices=sorted(ANALYZERS), help="bm25: analyzer (default zh)")
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prepare one run and say where it is."""
    prepare(
        open_qilin(args.data),
        config=args.config,
        settings=settings_of(args, language=args.language),
        out=args.out,
        runs=args.runs,
        rows=args.rows,
        limit=args.limit,
        overwrite=args.overwrite,
        progress=not args.quiet,
    )
    print(args.out)
    return 0


def prepare(
    source: QilinSource,
    *,
    config: str,
    settings: Settings,
    out: Path,
    runs: Sequence[Path] = (),
    rows: str = "answered",
    limit: int | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Path:
    """Ranks the notes for the rows of a config and writes `out` (parquet with its recipe; a TREC run by suffix).

    A finished `out` of the same recipe is left as it is; DataError for one of another recipe unless `overwrite`.
    """
    if config not in CONFIGS:
        raise unknown("config", config, CONFIGS)
    if limit is not None and limit < 1:
        raise SettingError(f"limit {limit}: choose a number of rows from 1")
    check_format(out)
    source.check({config: ["query"], "notes": ["note_idx", "note_title", "note_content"]})
    with locked(out):
        task = Task(
            queries=queries(source, config=config, rows=rows, limit=limit),
            corpus=NotesCorpus(source),
            texts=lambda ids: {note_idx: note.text for note_idx, note in source.notes(set(ids)).items()},
            inputs=[read_input(path, source=source, config=config) for path in runs],
            progress=progress,
        )
        chosen = retriever(settings, task)
        recipe = {**chosen.recipe(), "config": config, "config_fingerprint": source.fingerprint(config)}
        if is_done(out, recipe, overwrite=overwrite):
            return out
        folder = open_work(out, recipe)
        rankings = dict(zip(task.queries, chosen.rank(folder), strict=True))
        save(out, rankings, recipe)
        close_work(out)
    return out


def queries(source: QilinSource, *, config: str, rows: str, limit: int | None) -> dict[Any, str]:
    """Query texts by row number; of `dqa` those of rows with an answer, unless `rows` is `all`."""
    answered = config == "dqa" and rows == "answered"
    columns = ["query", *(["dqa_output"] if answered else [])]
    found = source.rows(config, columns, limit=None if answered else limit)
    kept = [row for row in found if not answered or (row["dqa_output"] or "").strip() not in NOT_TRIGGERED][:limit]
    if not kept:
        raise DataError(f"{source.name}: config {config!r} has no row to rank for (rows: {rows})")
    return {row["row"]: row["query"] or "" for row in kept}


def read_input(path: Path, *, source: QilinSource, config: str) -> tuple[Run, Recipe]:
    """A run to start from: one of ours, checked against the data, or a TREC file whose queries are row numbers."""
    if path.suffix == ".parquet":
        found = read_contexts(
            path, config=config, fingerprint=source.fingerprint("notes"), config_fingerprint=source.fingerprint(config)
        )
        return found, {**read_recipe(path), "empty_rows": []}
    trec = read_trec(path)
    if not all(isinstance(key, int) and isinstance(note, int) for key, ids in trec[0].items() for note, _ in ids):
        raise DataError(f"{path}: Qilin's runs hold row numbers and note ids, both integers")
    return trec


def is_done(out: Path, recipe: Mapping[str, Any], *, overwrite: bool) -> bool:
    """Whether `out` is there and made by this recipe. DataError for another file, unless it may be replaced."""
    if not out.exists() or is_trec(out):
        if out.exists() and not overwrite:
            raise DataError(f"{out}: is there already; choose another --out, or --overwrite")
        return False
    known: Mapping[str, Any] = {}
    try:
        known = read_recipe(out)
    except DataError:
        if not overwrite:
            raise
    if {name: known.get(name) for name in recipe} == dict(recipe):
        return True
    if not overwrite:
        different = ", ".join(sorted(name for name in recipe if known.get(name) != recipe[name]))
        raise DataError(f"{out}: made by another recipe (different: {different}); choose another --out, or --overwrite")
    return False


def is_trec(path: Path) -> bool:
    """Whether the suffix asks for a TREC run."""
    return path.suffix in (".trec", ".run", ".txt", ".gz")


def check_format(out: Path) -> None:
    """Raises SettingError for a suffix that names no format."""
    if not is_trec(out) and out.suffix != ".parquet":
        raise SettingError(f"--out {str(out)!r}: choose a name that ends with .parquet, .trec, .run, .txt or .gz")


def save(out: Path, rankings: Mapping[Any, Iterable[tuple[Any, float]]], recipe: Mapping[str, Any]) -> None:
    """Writes the file in the format that its suffix names."""
    held = {key: list(ranking) for key, ranking in rankings.items()}
    if is_trec(out):
        write_run(out, held.items(), name=f"{TREC_PREFIX}{recipe['retriever']}")
        if empty := [str(key) for key, ranking in held.items() if not ranking]:
            logger.warning(
                "%s: %d of %d queries found nothing and have no line in this TREC run: %s%s",
                out,
                len(empty),
                len(held),
                ", ".join(empty[:20]),
                ", …" if len(empty) > 20 else "",
            )
    else:
        write_contexts(out, held, recipe=recipe)
