"""Retrieval sets in BEIR/MTEB format: a corpus, queries and qrels."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.sources.squad import open_text, read_json_lines


@dataclass(frozen=True)
class RetrievalSet:
    """Texts by id, in file order; `qrels` maps a query id to its relevant document ids."""

    documents: dict[str, str]
    queries: dict[str, str]
    qrels: dict[str, tuple[str, ...]]


def read_beir(folder: Path, *, split: str, limit: int | None = None, seed: int = 0) -> RetrievalSet:
    """A set in BEIR's layout: `corpus.jsonl`, `queries.jsonl` (or `.gz`), `qrels/<split>.tsv`; `limit` as in assemble.

    Raises DataError naming the file and the record for a missing file, column or document, or an id that repeats.
    """
    corpus, queries, qrels = (_find(folder, name) for name in ("corpus.jsonl", "queries.jsonl", f"qrels/{split}.tsv"))
    return assemble(
        read_json_lines(corpus),
        read_json_lines(queries),
        _read_tsv(qrels),
        where=str(folder),
        limit=limit,
        seed=seed,
    )


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise DataError(
        f"{folder}: {name} (or {name}.gz) is missing; a set in BEIR format is corpus.jsonl, queries.jsonl and "
        "qrels/<split>.tsv"
    )


def _read_tsv(path: Path) -> list[dict[str, str]]:
    with open_text(path) as file:
        lines = [line.rstrip("\r\n").split("\t") for line in file if line.strip()]
    if lines and not _is_number(lines[0][-1]):
        lines = lines[1:]
    rows = []
    for number, line in enumerate(lines):
        if len(line) == 4:  # TREC's layout has a column between query and document
            line = [line[0], line[2], line[3]]
        if len(line) != 3:
            raise DataError(
                f"{path}: judgement {number} has {len(line)} columns; it must be query-id, corpus-id, score"
            )
        rows.append(dict(zip(("query-id", "corpus-id", "score"), line, strict=True)))
    return rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def assemble(
    corpus: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]],
    qrels: Iterable[Mapping[str, Any]],
    *,
    where: str,
    limit: int | None = None,
    seed: int = 0,
) -> RetrievalSet:
    """The set from rows: corpus `_id`, `title`, `text`; queries `_id`, `text`; qrels `query-id`, `corpus-id`, `score`.

    A document's text is title + " " + text (BEIR's own way). Only judgements with a score above 0 count. With `limit`,
    the documents are the relevant ones and a seeded sample of that many others, in bounded memory.
    """
    relevant: dict[str, list[str]] = {}
    for number, row in enumerate(qrels):
        place = f"{where}: qrels, judgement {number}"
        query, document, score = (_field(row, name, place) for name in ("query-id", "corpus-id", "score"))
        if not _is_number(str(score)):
            raise DataError(f"{place} (query {query}): score {score!r} is not a number")
        if float(score) > 0 and document not in relevant.setdefault(str(query), []):
            relevant[str(query)].append(str(document))
    texts: dict[str, str] = {}
    for number, row in enumerate(queries):
        place = f"{where}: queries, record {number}"
        key = _new_id(row, texts, place)
        text = str(_field(row, "text", place)).strip()
        if key in relevant and not text:
            raise DataError(f"{place} (_id {key!r}): an empty query")
        texts[key] = text
    wanted = {document for found in relevant.values() for document in found}
    documents = _documents(corpus, wanted, where=where, limit=limit, seed=seed)
    judged = {query: tuple(found) for query, found in relevant.items() if found}
    if not judged:
        raise DataError(f"{where}: no judgement with a score above 0, so there is nothing to ask")
    for query, found in judged.items():
        if query not in texts:
            raise DataError(f"{where}: the qrels judge query {query!r}, which the queries lack")
        for document in found:
            if document not in documents:
                raise DataError(
                    f"{where}: the qrels of query {query!r} name document {document!r}, which the corpus lacks"
                )
    return RetrievalSet(documents, {query: texts[query] for query in texts if query in judged}, judged)


def _documents(
    corpus: Iterable[Mapping[str, Any]], wanted: set[str], *, where: str, limit: int | None, seed: int
) -> dict[str, str]:
    """Texts by id: all, or the wanted ones and a reservoir of `limit` others, in the corpus's order."""
    chance = random.Random(seed)  # noqa: S311
    kept: dict[str, tuple[int, str]] = {}
    reservoir: list[str] = []
    others = 0
    for number, row in enumerate(corpus):
        place = f"{where}: corpus, record {number}"
        key = _new_id(row, kept, place)
        if limit is not None and key not in wanted:
            others += 1
            if len(reservoir) < limit:
                reservoir.append(key)
            else:
                slot = chance.randrange(others)
                if slot >= limit:
                    continue
                del kept[reservoir[slot]]
                reservoir[slot] = key
        kept[key] = (number, f"{row.get('title') or ''} {_field(row, 'text', place) or ''}".strip())
    return {key: text for key, (_, text) in sorted(kept.items(), key=lambda item: item[1][0])}


def _field(row: Mapping[str, Any], name: str, place: str) -> Any:
    if name not in row:
        raise DataError(
            f"{place} has no {name!r} (it has {', '.join(map(repr, row)) or 'nothing'}): is this BEIR format?"
        )
    return row[name]


def _new_id(row: Mapping[str, Any], seen: Mapping[str, object], place: str) -> str:
    # The hub's MTEB repositories write `_id` or, after a conversion, `id`.
    key = str(_field(row, "_id" if "_id" in row else "id", place))
    if key in seen:
        raise DataError(f"{place} repeats the id {key!r}: ids must be unique")
    return key
