"""`qilin-tasks retrieve`: the same retrievers for any collection of JSON lines."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qilin_tasks.commands.prepare import is_done, is_trec, save
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.files import locked
from qilin_tasks.retrieval.corpus import Corpus, JsonLinesCorpus
from qilin_tasks.retrieval.options import add_options, settings_of
from qilin_tasks.retrieval.pipeline import Recipe, Run, Settings, Task, retriever
from qilin_tasks.retrieval.workspace import close_work, open_work
from qilin_tasks.sources.run_rankings import read_trec
from qilin_tasks.text.analyzers import ANALYZERS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "retrieve",
        help="rank any collection for any queries",
        description='Rank a collection (JSON lines {"id": …, "contents": …}) for topics (lines of id, tab, query).',
    )
    parser.add_argument("--corpus", type=Path, required=True, help="JSON lines with `id` and `contents`")
    parser.add_argument("--topics", type=Path, required=True, help="lines of topic id, tab, query")
    parser.add_argument("--language", required=True, choices=sorted(ANALYZERS), help="bm25: analyzer")
    add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Retrieve one run and say where it is."""
    retrieve(
        args.corpus,
        args.topics,
        settings=settings_of(args, language=args.language),
        out=args.out,
        runs=args.runs,
        overwrite=args.overwrite,
        progress=not args.quiet,
    )
    print(args.out)
    return 0


def retrieve(
    corpus: Path,
    topics: Path,
    *,
    settings: Settings,
    out: Path,
    runs: Iterable[Path] = (),
    overwrite: bool = False,
    progress: bool = False,
) -> Path:
    """Ranks the documents of `corpus` for `topics` and writes the TREC run `out`."""
    if not is_trec(out):
        raise SettingError(f"--out {str(out)!r}: choose a name that ends with .trec, .run, .txt or .gz")
    documents = JsonLinesCorpus(corpus)
    with locked(out):
        task = Task(
            queries=read_topics(topics),
            corpus=documents,
            texts=lambda ids: read_texts(documents, ids),
            inputs=[_as_text(read_trec(path)) for path in runs],
            progress=progress,
        )
        chosen = retriever(settings, task)
        recipe = chosen.recipe()
        if is_done(out, recipe, overwrite=overwrite):
            return out
        folder = open_work(out, recipe)
        save(out, dict(zip(task.queries, chosen.rank(folder), strict=True)), recipe)
        close_work(out)
    return out


def _as_text(given: tuple[Run, Recipe]) -> tuple[Run, Recipe]:
    """Ids as text, as the collection has them (a run of nothing but numbers is read as numbers)."""
    found, recipe = given
    return {str(key): [(str(name), score) for name, score in ranking] for key, ranking in found.items()}, recipe


def read_topics(path: Path) -> dict[Any, str]:
    """Queries by topic id. DataError names the line that has no tab, no id, or an id seen before."""
    topics: dict[Any, str] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read ({error}); give UTF-8 lines of topic id, tab, query") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        identifier, tab, query = line.partition("\t")
        if not tab or not identifier.strip() or any(character.isspace() for character in identifier.strip()):
            raise DataError(f"{path}, line {number}: {line[:60]!r} is not topic id, tab, query")
        if identifier.strip() in topics:
            raise DataError(f"{path}, line {number}: topic {identifier.strip()!r} is there twice")
        topics[identifier.strip()] = query
    if not topics:
        raise DataError(f"{path}: no topic; give lines of topic id, tab, query")
    return topics


def read_texts(corpus: Corpus, ids: Iterable[Any]) -> Mapping[Any, str]:
    """Texts by id, in one pass. DataError for an id that the collection lacks."""
    wanted = set(ids)
    held: dict[Any, str] = {}
    for batch in corpus.batches(4096):
        for identifier, text in zip(batch.ids.tolist(), batch.texts.tolist(), strict=True):
            if identifier in wanted:
                held[identifier] = text
    if missing := sorted(wanted - held.keys(), key=str):
        raise DataError(f"the run names {len(missing)} documents that the collection lacks, for example {missing[0]!r}")
    return held
