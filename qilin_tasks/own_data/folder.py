"""A user's data as a folder in the published layout, with what belongs to it: whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from typing_extensions import Self

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.own_data.table import Faults, Notes, Question, read_corpus, read_questions
from qilin_tasks.retrieval.run_file import write_contexts
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.writing import write_table
from qilin_tasks.text.languages import LANGUAGES

#: Beside the data: what the folder was made of. A folder without it is not ours to replace.
MANIFEST = "own_data.json"
FORMAT = 1
#: The run of the notes that came with the questions; the condition `contexts` shows it.
GIVEN = "contexts.parquet"
_AT_A_TIME = 10_000


@dataclass(frozen=True)
class OwnData:
    """What a folder holds. `references` and `given` are the most of one question, `cited` questions that cite."""

    language: str
    questions: int
    notes: int
    references: int
    given: int
    cited: int


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Raises DataError where something else is in the place, or a finished folder that may not be replaced."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder}: is there already and was not made by new-data; choose another name")
    if not overwrite:
        raise DataError(f"{folder}: is there already; choose another name, or --overwrite")


def write_own_data(place: Path, questions: Path, corpus: Path | None, *, language: str) -> OwnData:
    """Writes `dqa/`, `notes/`, the manifest and, where questions bring notes, GIVEN into an empty folder.

    Raises SettingError for an unknown language, DataError with every fault of the files.
    """
    if language not in LANGUAGES:
        raise unknown("language", language, LANGUAGES)
    faults, notes = Faults(), Notes()
    with _NotesWriter(place / "notes") as writer:
        if corpus is not None:
            for _ in read_corpus(corpus, notes, faults):
                if len(notes.texts) >= _AT_A_TIME:
                    writer.write(notes.texts)
        rows = read_questions(questions, notes, faults, corpus=corpus is not None)
        writer.write(notes.texts)
    faults.stop()
    _write_questions(place / "dqa", rows)
    if any(row.notes for row in rows):
        _write_given(place, rows)
    made = OwnData(
        language,
        len(rows),
        notes.count,
        max(len(row.answers) for row in rows),
        max(len(row.notes) for row in rows),
        sum(bool(row.cited) for row in rows),
    )
    files = {path.name: _sha256(path) for path in (questions, corpus) if path}
    manifest = {"format": FORMAT, **asdict(made), "made_of": files}
    (place / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1), encoding="utf-8")
    return made


def language_of(folder: Path) -> str:
    """The language that a folder was made with; Chinese for one in the published layout that has no manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        return "zh"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    if manifest.get("format") != FORMAT:
        raise DataError(
            f"{path}: format {manifest.get('format')!r}, this version reads {FORMAT}; make the folder again"
        )
    return str(manifest["language"])


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            total.update(block)
    return total.hexdigest()


class _NotesWriter:
    """The notes table, some rows at a time: a corpus need not fit into memory twice."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder.mkdir()
        self._count = 0
        self._schema = pa.schema([("note_idx", pa.int64()), ("note_title", pa.string()), ("note_content", pa.string())])
        self._writer = pq.ParquetWriter(folder / "train-00000-of-00001.parquet", self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, texts: list[tuple[str, str]]) -> None:
        """Writes these notes behind the others, and empties the list."""
        import pyarrow as pa

        places = range(self._count, self._count + len(texts))
        columns = [list(places), [title for title, _ in texts], [text for _, text in texts]]
        self._writer.write_table(pa.table(columns, schema=self._schema), row_group_size=1000)
        self._count += len(texts)
        texts.clear()


def _write_questions(folder: Path, rows: Sequence[Question]) -> None:
    import pyarrow as pa

    columns = {
        "question_id": pa.array([row.id for row in rows], pa.string()),
        "query": pa.array([row.question for row in rows], pa.string()),
        "dqa_output": pa.array([row.answers[0] for row in rows], pa.string()),
        "ref_note_idx_list": pa.array([row.cited for row in rows], pa.list_(pa.int64())),
    }
    # With one reference each, the tasks of Qilin can read the folder too; they know no others.
    if any(len(row.answers) > 1 for row in rows):
        columns["references"] = pa.array([row.answers for row in rows], pa.list_(pa.string()))
    write_table(pa.table(columns), folder)


def _write_given(place: Path, rows: Sequence[Question]) -> None:
    source = open_qilin(str(place))
    rankings = {
        number: [(note, 1.0 / rank) for rank, note in enumerate(row.notes, start=1)] for number, row in enumerate(rows)
    }
    recipe = {
        "retriever": "given",
        "config": "dqa",
        "config_fingerprint": source.fingerprint("dqa"),
        "corpus_fingerprint": source.fingerprint("notes"),
    }
    write_contexts(place / GIVEN, rankings, recipe=recipe)
