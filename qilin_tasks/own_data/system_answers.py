"""A file of ready-made answers, checked row by row against the documents that they answer."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.family import Document
from qilin_tasks.own_data.rows import READERS, Row, read_rows
from qilin_tasks.own_data.table import Faults

#: What names a document: the row number that every task has, or the id that a user's own question has.
KEYS = ("doc_key", "question_id")
ANSWER = "answer"
TABS = ".tsv"
SHOWN_KEYS = 5
HELP = "a row is {DOC_KEY, answer}: docs/systems.md has an example"


def read_answers(path: Path, documents: Sequence[Document], *, task: str) -> dict[int | str, str]:
    """Answers by `doc_key`, in file order; documents without one are simply not in it.

    Raises DataError that names every faulty line at once: an unknown or repeated document, an answer that is no text.
    """
    faults = Faults()
    answers: dict[int | str, str] = {}
    places: dict[int | str, str] = {}
    by_name = {name: {str(doc[name]): doc["doc_key"] for doc in documents if name in doc} for name in KEYS}
    for row in _rows(path):
        if row.fault:
            faults.add(row.place, row.fault)
            continue
        try:
            key = _document(row.values, by_name, task=task)
            if key in places:
                raise ValueError(f"document {key!r} is answered in {places[key]} too")
            places[key] = row.place
            answers[key] = _answer(row.values)
        except ValueError as error:
            faults.add(row.place, error)
    faults.stop(HELP)
    if not answers:
        raise DataError(f"{path}: holds no answer; {HELP}")
    return answers


def _document(values: Mapping[str, Any], by_name: Mapping[str, Mapping[str, int | str]], *, task: str) -> int | str:
    name = next((name for name in KEYS if values.get(name) is not None), None)
    if name is None:
        raise ValueError(f"no {' or '.join(KEYS)}: its columns are {', '.join(map(repr, values)) or 'none'}")
    known, given = by_name[name], values[name]
    if not known:
        raise ValueError(f"{name}: documents of {task} have none: name them by doc_key")
    # A CSV and a table of floats write row numbers as text.
    text = str(int(given)) if isinstance(given, float) and given.is_integer() else str(given).strip()
    if isinstance(given, bool) or text not in known:
        raise ValueError(
            f"{name} {given!r}: no document of {task} (it has {len(known)}, the first is {next(iter(known))})"
        )
    return known[text]


def _answer(values: Mapping[str, Any]) -> str:
    if ANSWER not in values:
        raise ValueError(f"no {ANSWER!r}: its columns are {', '.join(map(repr, values))}")
    answer = values[ANSWER]
    if not isinstance(answer, str):
        raise ValueError(f'{ANSWER} {answer!r}: a text is expected; "" where the system said nothing')  # noqa: TRY004
    return answer


def _rows(path: Path) -> Iterator[Row]:
    if path.suffix == TABS and path.is_file():
        return _tabbed(path)
    if path.suffix not in READERS:
        raise unknown(f"{path}: suffix", path.suffix, [*READERS, TABS])
    return read_rows(path)


def _tabbed(path: Path) -> Iterator[Row]:
    """`doc_key<TAB>answer` lines, as tools write runs; a header may name the columns."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        columns = [KEYS[0], ANSWER]
        reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            for cells in reader:
                place = f"{path.name}, line {reader.line_num}"
                if reader.line_num == 1 and ANSWER in cells:
                    columns = cells
                elif cells and len(cells) != len(columns):
                    yield Row(place, {}, f"{len(cells)} columns, {len(columns)} expected: doc_key, a tab, the answer")
                elif cells:
                    yield Row(place, dict(zip(columns, cells, strict=True)))
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path}, after line {reader.line_num}: not a table in UTF-8 ({error})") from error


def missing_keys(documents: Sequence[Document], answers: Mapping[int | str, str]) -> list[int | str]:
    """The documents without an answer, in order."""
    return [doc["doc_key"] for doc in documents if doc["doc_key"] not in answers]


def check_complete(missing: Sequence[int | str], *, documents: int, path: Path, task: str) -> None:
    """Raises DataError where documents have no answer."""
    if missing:
        shown = ", ".join(map(str, missing[:SHOWN_KEYS])) + (", …" if len(missing) > SHOWN_KEYS else "")
        raise DataError(
            f"{path}: no answer to {len(missing)} of {documents} documents of {task} (doc_key {shown}): give them; or "
            "--allow-missing counts them as empty answers, which score 0 and stay in the mean, and --limit N scores "
            "the first N documents only"
        )
