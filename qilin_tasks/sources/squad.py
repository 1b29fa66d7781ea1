"""SQuAD-format reading sets (JSON, or flat rows as the hub has them), checked record by record."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError


@dataclass(frozen=True)
class Answer:
    """A gold answer; `start` counts code points of the paragraph."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Paragraph:
    title: str
    text: str
    questions: tuple[Question, ...]


def read_squad(path: Path) -> list[Paragraph]:
    """Paragraphs of a local file: SQuAD JSON, or JSON lines of flat rows; either may be gzipped.

    Raises DataError that names the file and the record for anything that is not in the format, a duplicate
    question id, an empty question and an empty paragraph.
    """
    if ".jsonl" in path.suffixes:
        return paragraphs_of_rows(read_json_lines(path), where=str(path))
    with open_text(path) as file:
        try:
            content = json.load(file)
        except (json.JSONDecodeError, UnicodeDecodeError, OSError, EOFError) as error:
            raise DataError(f"{path}: not readable as JSON ({error}); download the file again") from error
    return paragraphs_of_json(content, where=str(path))


def open_text(path: Path) -> Any:
    """A text file (UTF-8, a byte order mark at its start is dropped), gzipped or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file, one a line; blank lines are skipped. Raises DataError with the line's number."""
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise DataError(f"{path}, line {number}: must hold a JSON object, not {_kind(row)}")
                    yield row
    except (json.JSONDecodeError, UnicodeDecodeError, OSError, EOFError) as error:
        raise DataError(f"{path}, line {max(number, 1)}: not readable as JSON lines ({error})") from error


def paragraphs_of_json(content: Any, *, where: str) -> list[Paragraph]:
    """The paragraphs of a parsed SQuAD document `{"data": [{"title", "paragraphs": [{"context", "qas"}]}]}`."""
    check = _Records(where)
    articles = check.field(content, "data", list, "the file")
    paragraphs = []
    for a, article in enumerate(articles):
        place = f"data[{a}]"
        for p, raw in enumerate(check.field(article, "paragraphs", list, place)):
            at = f"{place}.paragraphs[{p}]"
            text = check.paragraph(check.field(raw, "context", str, at), at)
            questions = []
            for q, qa in enumerate(check.field(raw, "qas", list, at)):
                spot = f"{at}.qas[{q}]"
                key = check.id(check.field(qa, "id", (str, int), spot), spot)
                spot = f"{spot} (id {key!r})"
                question = check.question(check.field(qa, "question", str, spot), spot)
                if qa.get("is_impossible"):
                    # SQuAD 2.0: its plausible answers are none.
                    continue
                answers = [
                    Answer(
                        check.field(answer, "text", str, f"{spot}.answers[{n}]"),
                        check.field(answer, "answer_start", int, f"{spot}.answers[{n}]"),
                    )
                    for n, answer in enumerate(check.field(qa, "answers", list, spot))
                ]
                questions.append(Question(key, question, tuple(answers)))
            paragraphs.append(Paragraph(str(article.get("title") or ""), text, tuple(questions)))
    return check.nonempty(paragraphs)


def paragraphs_of_rows(rows: Iterable[Mapping[str, Any]], *, where: str) -> list[Paragraph]:
    """Paragraphs of flat rows: `id` or `question_id`, `context`, `question`, `answers` (`text`, `answer_start` lists).

    Rows with the same context are one paragraph; paragraphs come in order of first appearance.
    """
    check = _Records(where)
    titles: dict[str, str] = {}
    questions: dict[str, list[Question]] = {}
    for number, row in enumerate(rows):
        at = f"row {number}"
        id_name = "id" if "id" in row else "question_id"
        key = check.id(check.field(row, id_name, (str, int), at), at)
        at = f"{at} ({id_name} {key!r})"
        text = check.paragraph(check.field(row, "context", str, at), at)
        question = check.question(check.field(row, "question", str, at), at)
        if row.get("is_impossible"):
            continue
        answers = check.field(row, "answers", dict, at)
        texts = check.field(answers, "text", list, f"{at}.answers")
        starts = check.field(answers, "answer_start", list, f"{at}.answers")
        if len(texts) != len(starts):
            raise check.error(f"{at}.answers", f"has {len(texts)} texts and {len(starts)} values of answer_start")
        pairs = []
        for n, (answer, start) in enumerate(zip(texts, starts, strict=True)):
            pair = {"text": answer, "answer_start": start}
            spot = f"{at}.answers[{n}]"
            pairs.append(Answer(check.field(pair, "text", str, spot), check.field(pair, "answer_start", int, spot)))
        titles.setdefault(text, str(row.get("title") or ""))
        questions.setdefault(text, []).append(Question(key, question, tuple(pairs)))
    return check.nonempty([Paragraph(titles[text], text, tuple(asked)) for text, asked in questions.items()])


class _Records:
    """Checks of one data set's records; every error names the set and the record."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.seen: dict[str, str] = {}

    def error(self, place: str, problem: str) -> DataError:
        return DataError(f"{self.where}: {place} {problem}")

    def field(self, record: Any, name: str, kind: type | tuple[type, ...], place: str) -> Any:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        if not isinstance(record, Mapping):
            raise self.error(place, f"must be an object with {name!r}, not {_kind(record)}: is this SQuAD format?")
        if name not in record:
            raise self.error(
                place, f"has no {name!r} (it has {', '.join(map(repr, record)) or 'nothing'}): is this SQuAD format?"
            )
        value = record[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(place, f"has a {name!r} of type {_kind(value)}; it must be {wanted}")
        return value

    def id(self, value: str | int, place: str) -> str:
        key = str(value)
        if key in self.seen:
            raise self.error(place, f"repeats the question id {key!r} of {self.seen[key]}: ids must be unique")
        self.seen[key] = place
        return key

    def question(self, text: str, place: str) -> str:
        if not text.strip():
            raise self.error(place, "has an empty question: remove the record or fill it in")
        return text

    def paragraph(self, text: str, place: str) -> str:
        if not text.strip():
            raise self.error(place, "has a paragraph without any sentence (blank context)")
        return text

    def nonempty(self, paragraphs: list[Paragraph]) -> list[Paragraph]:
        if not any(paragraph.questions for paragraph in paragraphs):
            raise self.error("the set", "holds no question")
        return paragraphs


def _kind(value: Any) -> str:
    return type(value).__name__
