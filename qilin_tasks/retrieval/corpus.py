"""Collections as a stream of texts with ids: Qilin's notes, and JSON lines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.retrieval.texts import ArrowTexts, ListTexts, Texts
from qilin_tasks.signature import digest_all

MARK_EVERY = 8_192
"""Lines between the places in a file of JSON lines from which it can be read on."""


class Batch(NamedTuple):
    """Some documents in corpus order: ids (int64 or text) and texts (empty where nothing was written)."""

    ids: NDArray[Any]
    texts: Texts


class Corpus(Protocol):
    """A collection that can be read from any document on; `fingerprint` changes when its content does."""

    @property
    def count(self) -> int:
        """The number of documents."""

    @property
    def fingerprint(self) -> str:
        """Identity of the content."""

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        """Batches of exactly `size` documents (the last may be shorter) from document `start` on."""


class NoteSource(Protocol):
    """What is asked of `qilin_tasks.sources.qilin.QilinSource`."""

    def note_count(self) -> int:
        """The number of notes."""

    def iter_notes(self, columns: Sequence[str], batch_size: int, *, start: int) -> Iterator[Any]:
        """Arrow record batches."""

    def fingerprint(self, config: str) -> str:
        """Identity of a config's files."""


class NotesCorpus:
    """The `notes` of Qilin; a note's text is title, a space, content, as the official conversion has it."""

    def __init__(self, source: NoteSource) -> None:
        self._source = source

    @property
    def count(self) -> int:
        return self._source.note_count()

    @property
    def fingerprint(self) -> str:
        return self._source.fingerprint("notes")

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        import pyarrow as pa

        columns = ["note_idx", "note_title", "note_content"]
        waiting: list[Any] = []
        rows = 0
        for batch in self._source.iter_notes(columns, size, start=start):
            waiting.append(batch)
            rows += batch.num_rows
            while rows >= size:
                table = pa.Table.from_batches(waiting)
                yield _notes(table.slice(0, size))
                waiting, rows = table.slice(size).to_batches(), rows - size
        if rows:
            yield _notes(pa.Table.from_batches(waiting))


def _notes(table: Any) -> Batch:
    ids, titles, contents = (column.combine_chunks() for column in table.columns)
    return Batch(ids.to_numpy(zero_copy_only=False), ArrowTexts(titles, contents))


class JsonLinesCorpus:
    """Anserini's JSON collection: one object a line with `id` and `contents` (both text; extra fields are ignored)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[int, str] | None = None
        # (documents, lines, bytes) before places from which reading can start.
        self._marks: list[tuple[int, int, int]] = [(0, 0, 0)]

    def _look(self) -> tuple[int, str]:
        if self._known is None:
            digest, lines, offset = hashlib.sha256(), 0, 0
            try:
                with self._path.open("rb") as file:
                    for number, line in enumerate(file, start=1):
                        digest.update(line)
                        lines += bool(line.strip())
                        offset += len(line)
                        if lines % MARK_EVERY == 0 and lines > self._marks[-1][0]:
                            self._marks.append((lines, number, offset))
            except OSError as error:
                raise DataError(f"{self._path}: can't be read ({error}); give a file of JSON lines") from error
            if not lines:
                raise DataError(f'{self._path}: no document; each line is {{"id": "…", "contents": "…"}}')
            self._known = lines, digest.hexdigest()[:16]
        return self._known

    @property
    def count(self) -> int:
        return self._look()[0]

    @property
    def fingerprint(self) -> str:
        return self._look()[1]

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        ids: list[str] = []
        texts: list[str] = []
        document, lines, offset = max(mark for mark in self._marks if mark[0] <= start)
        with self._path.open("rb") as file:
            file.seek(offset)
            for number, line in enumerate(file, start=lines + 1):
                if not line.strip():
                    continue
                document += 1
                if document <= start:
                    continue
                identifier, text = self._parse(line, number)
                ids.append(identifier)
                texts.append(text)
                if len(texts) == size:
                    yield Batch(np.array(ids), ListTexts(texts))
                    ids, texts = [], []
        if texts:
            yield Batch(np.array(ids), ListTexts(texts))

    def _parse(self, line: bytes, number: int) -> tuple[str, str]:
        try:
            fields = json.loads(line)
            identifier, text = fields["id"], fields["contents"]
        except (ValueError, KeyError, TypeError) as error:
            shown = line[:60].decode("utf-8", errors="replace").strip()
            raise DataError(
                f'{self._path}, line {number}: {shown!r} is not {{"id": "…", "contents": "…"}} ({error!r})'
            ) from error
        if not isinstance(identifier, (str, int)) or isinstance(identifier, bool) or not str(identifier).strip():
            raise DataError(f"{self._path}, line {number}: id {identifier!r}: give a text that is not empty")
        if any(character.isspace() for character in str(identifier)):
            raise DataError(f"{self._path}, line {number}: id {identifier!r} holds blanks, which run files can't carry")
        if text is not None and not isinstance(text, str):
            raise DataError(f"{self._path}, line {number}: contents is {type(text).__name__}, not text")
        return str(identifier), text or ""


class ListCorpus:
    """Texts held in memory; a text's id is its position."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @property
    def count(self) -> int:
        return len(self.texts)

    @cached_property
    def fingerprint(self) -> str:
        return digest_all(self.texts, length=16)

    def batches(self, size: int, *, start: int = 0) -> Iterator[Batch]:
        for first in range(start, len(self.texts), size):
            texts = self.texts[first : first + size]
            yield Batch(np.arange(first, first + len(texts)), ListTexts(texts))


def check_distinct(ids: NDArray[Any]) -> None:
    """Raises DataError where an id occurs twice: a run could not tell the two documents apart."""
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        repeated = unique[counts > 1]
        shown = ", ".join(map(str, repeated[:5].tolist()))
        raise DataError(
            f"{len(repeated)} document ids occur more than once ({shown}{', …' if len(repeated) > 5 else ''}): "
            "note_idx must identify a note; download the notes again or drop the repeated rows"
        )
