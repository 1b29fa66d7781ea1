"""A user's questions and notes, checked row by row; every fault is kept, so that one run names them all."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qilin_tasks.errors import DataError
from qilin_tasks.own_data.rows import Row, read_rows
from qilin_tasks.own_data.values import (
    NOTE_COLUMNS,
    QUESTION_COLUMNS,
    NoteText,
    answers_of,
    list_of,
    note_of,
    pick,
    text_of,
)

SHOWN = 20
HELP = "docs/own-data.md has the columns and an example"


class Question(NamedTuple):
    """A row of `dqa`: `notes` (those that came with the question) and `cited` are places in the notes table."""

    id: str
    question: str
    answers: tuple[str, ...]
    notes: list[int]
    cited: list[int]


@dataclass
class Faults:
    """What is wrong, in order; `shown` keeps the first SHOWN."""

    shown: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, place: str, what: object) -> None:
        """Keep one fault of one row."""
        self.count += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{place}: {what}")

    def stop(self, way_out: str = HELP) -> None:
        """Raise DataError with all of them; nothing where there are none."""
        if self.count:
            more = f"\n  and {self.count - len(self.shown)} more" if self.count > len(self.shown) else ""
            lines = "".join(f"\n  {line}" for line in self.shown)
            raise DataError(f"{self.count} faults, nothing was written:{lines}{more}\n{way_out}")


@dataclass
class Notes:
    """The notes table as it grows: `texts` waits to be written, `places` finds a note by its id in the corpus."""

    places: dict[str, int] = field(default_factory=dict)
    texts: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0
    _same: dict[tuple[str, str], int] = field(default_factory=dict)

    def append(self, note: NoteText) -> int:
        """The place of a new row."""
        self.texts.append((note.title, note.text))
        self.count += 1
        return self.count - 1

    def shared(self, note: NoteText) -> int:
        """The place of this title and text, which many questions may bring: one row for all."""
        key = (note.title, note.text)
        if key not in self._same:
            self._same[key] = self.append(note)
        return self._same[key]


def read_corpus(path: Path, notes: Notes, faults: Faults) -> Iterator[int]:
    """Adds every note of a corpus file to `notes`; yields after each, so that the caller can write them away."""
    for row in _rows(path, NOTE_COLUMNS, faults):
        try:
            note = note_of({name: row.values.get(name) for names in NOTE_COLUMNS.values() for name in names})
            if note.id in notes.places:
                raise ValueError(f"id {note.id!r} is there twice")
        except ValueError as error:
            faults.add(row.place, error)
            continue
        place = notes.append(note)
        if note.id:
            notes.places[note.id] = place
        yield place
    if not notes.count and not faults.count:
        raise DataError(f"{path}: holds no note")


def read_questions(path: Path, notes: Notes, faults: Faults, *, corpus: bool) -> list[Question]:
    """The questions of a file; with a `corpus`, `notes` and `cited` are ids in it, without one each brings its own."""
    questions: list[Question] = []
    seen: dict[str, str] = {}
    for number, row in enumerate(_rows(path, QUESTION_COLUMNS, faults), start=1):
        question = _Reader(row, notes, faults, corpus=corpus).question(number)
        if question.id in seen:
            faults.add(row.place, f"id: {question.id!r} is that of {seen[question.id]} too")
        seen[question.id] = row.place
        questions.append(question)
    if not questions and not faults.count:
        raise DataError(f"{path}: holds no question")
    return questions


def _rows(path: Path, columns: Mapping[str, tuple[str, ...]], faults: Faults) -> Iterator[Row]:
    known = [name for names in columns.values() for name in names]
    for row in read_rows(path):
        if row.fault:
            faults.add(row.place, row.fault)
            continue
        # A slip in the name of an optional column would lose it silently.
        for name in row.values:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            if near and name not in known and near[0] not in row.values:
                faults.add(row.place, f"column {name!r}: did you mean {near[0]!r}?")
        yield row


class _Reader:
    """One row's columns; each fault is noted by itself, so that a row may have several."""

    def __init__(self, row: Row, notes: Notes, faults: Faults, *, corpus: bool) -> None:
        self.row, self.notes, self.faults, self.corpus = row, notes, faults, corpus

    def question(self, number: int) -> Question:
        """The row's question, with empty values in the place of faulty ones."""
        question = self._read("question", text_of)
        if question == "":
            self.faults.add(self.row.place, "question: missing")
        answers = self._read("answers", lambda value: answers_of(value, as_text=self.row.as_text))
        own = self._read("notes", self._notes) or {}
        cited = self._read("cited", lambda value: self._cited(value, own)) or []
        key = self._read("id", text_of) or str(number)
        return Question(key, question or "", answers or (), list(dict.fromkeys(own.values())), cited)

    def _read(self, column: str, read: Any) -> Any:
        try:
            return read(pick(self.row.values, QUESTION_COLUMNS[column]))
        except ValueError as error:
            self.faults.add(self.row.place, f"{column}: {error}")
            return None

    def _notes(self, value: Any) -> dict[str, int]:
        """The places of the question's notes by the names that `cited` may use."""
        given = list_of(value, as_text=self.row.as_text)
        if self.corpus:
            return {name: self._place(name) for name in map(text_of, given)}
        found: dict[str, int] = {}
        for number, item in enumerate(given, start=1):
            note = note_of(item)
            name = note.id or str(number)
            if name in found:
                raise ValueError(f"id {name!r} is there twice")
            found[name] = self.notes.shared(note)
        return found

    def _place(self, name: str) -> int:
        if name not in self.notes.places:
            raise ValueError(f"{name!r} is the id of no note in the corpus")
        return self.notes.places[name]

    def _cited(self, value: Any, own: Mapping[str, int]) -> list[int]:
        names = [text_of(item) for item in list_of(value, as_text=self.row.as_text)]
        if self.corpus:
            return list(dict.fromkeys(map(self._place, names)))
        for name in names:
            if name not in own:
                raise ValueError(
                    f"{name!r} is none of the question's notes ({', '.join(list(own)[:10]) or 'it has none'})"
                )
        return list(dict.fromkeys(own[name] for name in names))
