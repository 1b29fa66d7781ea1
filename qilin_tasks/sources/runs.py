"""Runs and qrels as files: TREC's formats and Qilin's `qid,pid[,score]` CSV, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.files import replacing

_QUERY = ("qid", "query_id", "query-id", "query_idx")
_CANDIDATE = ("pid", "doc_id", "docid", "corpus-id", "note_idx")
_SCORE = ("score", "sim")
_LABEL = ("label", "relevance", "rel", "score")


@dataclass(frozen=True)
class Run:
    """Rows (query, candidate, score) in any order, a higher score first; ids are all integers or all strings."""

    query_ids: NDArray[Any]
    candidate_ids: NDArray[Any]
    scores: NDArray[np.float64]
    name: str


@dataclass(frozen=True)
class Qrels:
    """Rows (query, relevant candidate), repeated rows kept; ids are all integers or all strings."""

    query_ids: NDArray[Any]
    candidate_ids: NDArray[Any]


def read_run(path: str | os.PathLike[str]) -> Run:
    """A TREC run (`qid Q0 pid rank score name`) or a CSV (`qid,pid,score`, header optional), also `.gz`.

    The score decides the order, as in trec_eval; `name` is the TREC run's, else the file's. NaN scores and repeated
    pairs are read as they are: `evaluate_run` refuses them. DataError names the line that isn't in the format.
    """
    queries, candidates, scores = [], [], []
    name = _stem(path)
    for number, row in _rows(path, (_QUERY, _CANDIDATE, _SCORE), trec=(0, 2, 4, 5)):
        queries.append(row[0])
        candidates.append(row[1])
        scores.append(_number(row[2], path, number))
        if len(row) > 3:
            name = row[3]
    if not queries:
        raise DataError(f"{path}: no row in this run; expected lines `qid Q0 pid rank score name` or `qid,pid,score`")
    return Run(_ids(queries), _ids(candidates), np.array(scores), name)


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """TREC qrels (`qid 0 pid relevance`) or a CSV (`qid,pid[,label]`), also `.gz`; labels <= 0 are left out."""
    queries, candidates = [], []
    for number, row in _rows(path, (_QUERY, _CANDIDATE, _LABEL), trec=(0, 2, 3), optional=1):
        if len(row) == 2 or _number(row[2], path, number) > 0:
            queries.append(row[0])
            candidates.append(row[1])
    if not queries:
        raise DataError(f"{path}: no relevant row in these qrels; expected lines `qid 0 pid relevance` or `qid,pid`")
    return Qrels(_ids(queries), _ids(candidates))


def write_run(
    path: str | os.PathLike[str],
    rankings: Iterable[tuple[int | str, Sequence[tuple[int | str, float]]]],
    *,
    name: str,
) -> None:
    """Write (query, [(candidate, score), best first]) as a TREC run, whole or not at all; gzipped for `.gz`."""
    path = Path(path)
    label = "_".join(name.split()) or "run"
    with replacing(path) as [unfinished], _open(unfinished, "wt", gzipped=path.suffix == ".gz") as file:
        for query, ranking in rankings:
            for rank, (candidate, score) in enumerate(ranking, start=1):
                file.write(f"{query} Q0 {candidate} {rank} {score!r} {label}\n")


def _rows(
    path: str | os.PathLike[str],
    columns: tuple[tuple[str, ...], ...],
    *,
    trec: tuple[int, ...],
    optional: int = 0,
) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields in the order of `columns`, or the TREC fields at the places `trec`)."""
    try:
        with _open(Path(path), "rt", gzipped=str(path).endswith(".gz")) as file:
            yield from _parsed(file, path, columns, trec, optional)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give a TREC run or a CSV") from None
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise DataError(
            f"{path}: can't be read ({error}); give a UTF-8 TREC or CSV file, gzipped only as .gz"
        ) from error


def _parsed(
    file: TextIO,
    path: str | os.PathLike[str],
    columns: tuple[tuple[str, ...], ...],
    trec: tuple[int, ...],
    optional: int,
) -> Iterator[tuple[int, list[str]]]:
    places: list[int] | None = None
    is_csv: bool | None = None
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        is_csv = "," in line if is_csv is None else is_csv
        if not is_csv:
            fields = line.split()
            if len(fields) != trec[-1] + 1:
                raise _malformed(path, number, line)
            yield number, [fields[place] for place in trec]
            continue
        fields = [field.strip() for field in next(csv.reader([line]))]
        if places is None:
            places = _header(fields, columns)
            if places is not None:
                if len(places) < len(columns) - optional:
                    raise _malformed(path, number, line)
                continue
            places = list(range(min(len(fields), len(columns))))
        if len(fields) <= max(places) or len(places) < len(columns) - optional:
            raise _malformed(path, number, line)
        yield number, [fields[place] for place in places]


def _header(fields: list[str], columns: tuple[tuple[str, ...], ...]) -> list[int] | None:
    """Positions of the named columns if the first line is a header."""
    lowered = [field.lower() for field in fields]
    if not set(lowered) & set(columns[0]):
        return None
    found = [next((lowered.index(name) for name in names if name in lowered), None) for names in columns]
    return [place for place in found if place is not None]


def _malformed(path: str | os.PathLike[str], number: int, line: str) -> DataError:
    return DataError(
        f"{path}, line {number}: {line.strip()[:80]!r} is neither TREC (run: `qid Q0 pid rank score name`; qrels: "
        "`qid 0 pid relevance`) nor CSV (run: `qid,pid,score`; qrels: `qid,pid[,label]`)"
    )


def _number(text: str, path: str | os.PathLike[str], number: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{path}, line {number}: {text[:40]!r} is not a number") from None


def _ids(texts: list[str]) -> NDArray[Any]:
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(texts, dtype=np.str_)


def _stem(path: str | os.PathLike[str]) -> str:
    name = Path(path).name
    return name.split(".")[0] or name


def _open(path: Path, mode: str, *, gzipped: bool) -> TextIO:
    encoding = "utf-8" if mode == "wt" else "utf-8-sig"
    if gzipped:
        return cast(TextIO, gzip.open(path, mode, encoding=encoding))
    return cast(TextIO, path.open(mode, encoding=encoding))
