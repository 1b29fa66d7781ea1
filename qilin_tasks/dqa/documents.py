"""Rows and notes to the documents that the DQA tasks ask about, the same for every way of loading them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from qilin_tasks.dqa.settings import RETRIEVERS, DQASettings
from qilin_tasks.errors import DataError
from qilin_tasks.metrics.rouge_l import check_references
from qilin_tasks.sources.qilin import Note, QilinSource, open_qilin
from qilin_tasks.text.notes import show_notes
from qilin_tasks.text.tokens import clean

ROW_COLUMNS = ("query", "dqa_output", "ref_note_idx_list")
#: Shown with a document where the release has it; the row number stands for it elsewhere.
SEARCH_ID = "search_idx"
ACTION_COLUMNS = ("is_like_clk", "is_onebox_trace_clk", "is_content_clk", "is_experience_clk")
RUN_COLUMNS = {"bm25": "bm25_results", "bert": "dpr_results"}
#: A user's own data may have several: `dqa_output` is the first of them.
REFERENCES = "references"
NOT_TRIGGERED = "-1"
# Where a row keeps the ids that were dropped from its citations.
DROPPED = "dropped_citations"
#: Of a row and of its document: whether the user acted on the answer, None where the copy lacks a column of actions.
ENGAGED = "engaged"

logger = logging.getLogger(__name__)

Ranking = Sequence[tuple[int, float]]


def is_answered(row: Mapping[str, Any]) -> bool:
    """Whether the row holds an answer: `-1`, null and blank mean that the module did not trigger."""
    output = clean(row["dqa_output"]).strip()
    # Zero-width characters alone are blank to every reader.
    return output != NOT_TRIGGERED and any(char.isprintable() and not char.isspace() for char in output)


def is_engaged(row: Mapping[str, Any]) -> bool:
    """Whether the user acted on the answer (any of the four `is_*_clk` flags is positive)."""
    return any((row[column] or 0) > 0 for column in ACTION_COLUMNS)


def answered_rows(source: QilinSource, *, answers: str, run_columns: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The `dqa` rows to ask about, in row order; `answers` is `all` or `engaged`. Raises DataError if none is left."""
    there = set(source.columns("dqa"))
    known = there.issuperset(ACTION_COLUMNS)
    actions = ACTION_COLUMNS if known or answers == "engaged" else ()
    named = [SEARCH_ID] if SEARCH_ID in there else []
    kept: list[dict[str, Any]] = []
    for rows in source.iter_rows("dqa", [*named, *ROW_COLUMNS, *run_columns, *actions]):
        for row in filter(is_answered, rows):
            row[ENGAGED] = is_engaged(row) if known else None
            if answers == "all" or row[ENGAGED]:
                kept.append(row if named else {**row, SEARCH_ID: row["row"]})
    if not kept:
        raise DataError(
            f"{source.name}: none of the {source.row_count('dqa')} rows of 'dqa' holds an answer (answers: {answers}); "
            "a row counts when `dqa_output` is not null, blank or -1"
            + (" and one of " + ", ".join(ACTION_COLUMNS) + " is positive" if answers == "engaged" else "")
        )
    check_references([row["dqa_output"] for row in kept], keys=[row["row"] for row in kept])
    return kept


def distinct(note_ids: Iterable[int]) -> list[int]:
    """Ids in order of first appearance."""
    return list(dict.fromkeys(note_ids))


def note_ids_of(row: Mapping[str, Any], settings: DQASettings, run: Mapping[int, Ranking] | None) -> list[int]:
    """The notes that a row's prompt shows, best first: `top_k` of a retriever, or all that the real answer cites."""
    if settings.context == "na":
        return []
    if settings.context == "oracle":
        cited = distinct(row["ref_note_idx_list"] or [])
        if not cited and row.get(DROPPED):
            raise DataError(
                f"dqa row {row['row']}, ref_note_idx_list: none of its ids {row[DROPPED]} can be a note, so there is "
                "nothing for the context 'oracle' to show; the other contexts don't need it"
            )
        return cited
    ranking = run.get(row["row"], ()) if run is not None else (row[RUN_COLUMNS[settings.context]] or ())
    return distinct(note_idx for note_idx, _ in ranking)[: settings.top_k]


def drop_impossible_citations(rows: Iterable[dict[str, Any]], *, note_count: int) -> str | None:
    """Takes ids that are null, negative or beyond the notes out of the rows' citations; says how many, or None.

    A row keeps what was taken out under DROPPED.
    """
    dropped = touched = 0
    example = ""
    for row in rows:
        cited = row["ref_note_idx_list"] or []
        bad = [note_idx for note_idx in cited if not 0 <= note_idx < note_count]
        if bad:
            row["ref_note_idx_list"] = [note_idx for note_idx in cited if 0 <= note_idx < note_count]
            row[DROPPED] = bad
            example = example or f"{bad[0]} in row {row['row']}"
            dropped, touched = dropped + len(bad), touched + 1
    return f"left out {dropped} cited ids of {touched} rows that no note can have ({example})" if dropped else None


class DQACorpus:
    """The answered rows and the notes that any of the four conditions shows, read once for all of them.

    `qilin_dqa` builds four tasks in one process; one pass over the notes serves them all.
    """

    def __init__(self, source: QilinSource) -> None:
        self.source = source
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._notes: dict[int, Note] = {}
        self._columns = set(source.columns("dqa"))

    def rows(self, answers: str) -> list[dict[str, Any]]:
        if answers not in self._rows:
            self._rows[answers] = answered_rows(self.source, answers=answers, run_columns=self._released())
        return self._rows[answers]

    def with_citations(self, answers: str) -> list[dict[str, Any]]:
        """As `rows`, without citations that no note can have: opens the notes to know how many there are."""
        rows = self.rows(answers)
        if complaint := drop_impossible_citations(rows, note_count=self.source.note_count()):
            logger.warning("%s: %s", self.source.name, complaint)
        return rows

    def _released(self) -> list[str]:
        return [column for column in RUN_COLUMNS.values() if column in self._columns]

    def check_run(self, context: str) -> None:
        """Raises DataError where the release has no ranking for `context`, with the command that computes it."""
        column = RUN_COLUMNS.get(context)
        if column is not None and column not in self._columns:
            raise DataError(
                f"{self.source.name}: the config 'dqa' has no column {column!r}, so the context {context!r} has to be "
                f"computed from the notes once: qilin-tasks prepare --config dqa --retriever {RETRIEVERS[context]} "
                f'--top-k 100 --out {context}.parquet; then pass --metadata \'{{"contexts": "{context}.parquet"}}\''
            )

    def notes(self, wanted: Iterable[int], *, top_k: int, answers: str) -> Mapping[int, Note]:
        """Notes by id. The first call fetches those of every released condition too, so that no second pass is due."""
        missing = set(wanted) - self._notes.keys()
        if missing:
            rows = self.with_citations(answers)
            self.source.check_note_ids("dqa", rows, self._released())
            for row in rows:
                missing.update(row["ref_note_idx_list"] or ())
                for column in RUN_COLUMNS.values():
                    missing.update(distinct(note_idx for note_idx, _ in (row.get(column) or ()))[:top_k])
            self._notes |= self.source.notes(missing - self._notes.keys())
        return self._notes


_corpora: dict[tuple[str, str | None, str], DQACorpus] = {}


def corpus_for(source: QilinSource) -> DQACorpus:
    """The process's corpus of a source; a folder whose `dqa` files changed is read again, and only one is kept."""
    key = (source.name, source.revision, source.fingerprint("dqa"))
    if key not in _corpora:
        _corpora.clear()
        _corpora[key] = DQACorpus(source)
    return _corpora[key]


class NoteShown(TypedDict):
    """A note as the prompt shows it."""

    note_idx: int
    title: str
    content: str
    trimmed: bool


def shown_notes(notes: Iterable[Note], *, note_chars: int, context_chars: int) -> list[NoteShown]:
    """Notes cut to their budgets (code points), in the order given."""
    shown = show_notes(
        ((note.note_idx, note.title, note.content) for note in notes),
        note_chars=note_chars,
        context_chars=context_chars,
    )
    return [
        {"note_idx": note.note_idx, "title": note.title, "content": note.content, "trimmed": note.trimmed}
        for note in shown
    ]


class DQADocument(TypedDict):
    """A question: `doc_key` is the row number, `reference` the answer that the user saw.

    `engaged` says whether the user acted on it; None where the copy doesn't know.
    """

    doc_key: int
    search_idx: int
    query: str
    notes: list[NoteShown]
    reference: str
    engaged: bool | None


def released_corpus(spec: str | None = None) -> DQACorpus:
    """The corpus of a copy with one reference a question. Raises DataError for several: all but one would be lost."""
    source = open_qilin(spec)
    if REFERENCES in source.columns("dqa"):
        raise DataError(
            f"{source.name}: its questions have several references, of which this task would read one: use the tasks "
            f"custom_dqa_*, with --metadata path={source.name}"
        )
    return corpus_for(source)


def build_dqa(settings: DQASettings, *, spec: str | None = None) -> list[DQADocument]:
    """Documents of one condition. Raises DataError for data that is not as published, before anything is generated."""
    return documents_of(settings, released_corpus(spec).source)


def documents_of(settings: DQASettings, source: QilinSource) -> list[DQADocument]:
    """As `build_dqa`, from any copy."""
    corpus = corpus_for(source)
    rows = (corpus.with_citations if settings.context == "oracle" else corpus.rows)(settings.answers)
    run: Mapping[int, Ranking] | None = None
    if (path := settings.context_file) is not None:
        from qilin_tasks.retrieval.run_file import read_contexts

        settings.check_recipe()
        run = read_contexts(path, config="dqa", fingerprint=corpus.source.fingerprint("notes"))
    else:
        corpus.check_run(settings.context)
    shown_ids = [note_ids_of(row, settings, run) for row in rows]
    wanted = {note_idx for ids in shown_ids for note_idx in ids}
    notes = corpus.notes(wanted, top_k=settings.top_k, answers=settings.answers) if wanted else {}
    return [_document(row, [notes[i] for i in ids], settings) for row, ids in zip(rows, shown_ids, strict=True)]


def _document(row: Mapping[str, Any], notes: Sequence[Note], settings: DQASettings) -> DQADocument:
    return {
        "doc_key": row["row"],
        "search_idx": row["search_idx"],
        "query": clean(row["query"]).strip(),
        "notes": shown_notes(notes, note_chars=settings.note_chars, context_chars=settings.context_chars),
        "reference": clean(row["dqa_output"]).strip(),
        "engaged": row[ENGAGED],
    }
