"""Rows and notes to documents with chosen evidence: cited notes, BM25's best that are not cited, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, TypedDict, TypeVar

from qilin_tasks.dqa.documents import DQACorpus, NoteShown, Ranking, distinct, released_corpus, shown_notes
from qilin_tasks.errors import DataError
from qilin_tasks.evidence.settings import EvidenceSettings
from qilin_tasks.sources.qilin import Note
from qilin_tasks.text.facts.extract import extract
from qilin_tasks.text.tokens import clean, tokenize_chars

#: Of each row's ranking, how many notes may become distractors.
POOL = 30
#: A distractor with more than this share of the answer's pairs of neighbouring tokens holds the answer.
LEAK = 0.5
T = TypeVar("T")


class EvidenceDocument(TypedDict):
    """A question; `cited` are the places (from 1) of the cited notes, `leaked` the distractors left out."""

    doc_key: int
    search_idx: int
    query: str
    notes: list[NoteShown]
    reference: str
    cited: list[int]
    leaked: int


def build_evidence(settings: EvidenceSettings) -> list[EvidenceDocument]:
    """One document a row that has a cited note (every row, where only distractors are shown)."""
    return [
        _document(row, cited, others, settings, leaked=leaked, doc_key=row["row"], wanted=settings.cited)
        for row, cited, others, leaked in _rows(settings)
        if cited or not settings.cited
    ]


def build_noevidence(settings: EvidenceSettings) -> list[EvidenceDocument]:
    """Two documents a row that has a cited note: with only distractors (even key), and with the cited notes (odd)."""
    return [
        _document(row, cited, others, settings, leaked=leaked, doc_key=2 * row["row"] + side, wanted=wanted)
        for row, cited, others, leaked in _rows(settings)
        if cited
        for side, wanted in enumerate((0, settings.cited))
    ]


def holds_answer(note: str, reference: str) -> bool:
    """Whether a note holds the answer after all: all its quantities (two or more), or most of its words."""
    wanted = {fact.key for fact in extract(reference) if fact.kind == "quantity"}
    if len(wanted) > 1 and wanted <= {fact.key for fact in extract(note)}:
        return True
    pairs = _pairs(reference)
    return len(pairs & _pairs(note)) > LEAK * len(pairs)


def _pairs(text: str) -> set[tuple[str, str]]:
    tokens = tokenize_chars(text)
    return set(pairwise(tokens))


def _rows(settings: EvidenceSettings) -> list[tuple[dict[str, Any], list[Note], list[Note], int]]:
    """Rows with their cited notes, the distractors that don't hold the answer, and the number of those that do."""
    corpus = released_corpus()
    rows = corpus.with_citations(settings.answers)
    rankings = _rankings(corpus, rows, settings)
    cited_ids = [distinct(row["ref_note_idx_list"] or ()) for row in rows]
    pools = [
        [note_idx for note_idx in distinct(idx for idx, _ in ranking)[:POOL] if note_idx not in set(cited)]
        for ranking, cited in zip(rankings, cited_ids, strict=True)
    ]
    wanted = {idx for ids in (*cited_ids, *pools) for idx in ids}
    notes = corpus.notes(wanted, top_k=POOL, answers=settings.answers) if wanted else {}
    made = []
    for row, cited, pool in zip(rows, cited_ids, pools, strict=True):
        others: list[Note] = []
        leaked = 0
        for note_idx in pool:
            if len(others) == settings.notes:
                break
            note = notes[note_idx]
            leaks = holds_answer(f"{note.title}\n{note.content}", clean(row["dqa_output"]))
            leaked += leaks
            if not leaks:
                others.append(note)
        made.append((row, [notes[idx] for idx in cited], others, leaked))
    if not any(cited for _, cited, _, _ in made):
        raise DataError(f"{corpus.source.name}: none of {len(rows)} rows of 'dqa' has a note in ref_note_idx_list")
    return made


def _rankings(corpus: DQACorpus, rows: Sequence[Mapping[str, Any]], settings: EvidenceSettings) -> list[Ranking]:
    if settings.contexts is None:
        corpus.check_run("bm25")
        return [row["bm25_results"] or () for row in rows]
    from qilin_tasks.retrieval.run_file import read_contexts

    run = read_contexts(settings.contexts, config="dqa", fingerprint=corpus.source.fingerprint("notes"))
    return [run.get(row["row"], ()) for row in rows]


def arrange(cited: Sequence[T], others: Sequence[T], *, place: str, key: str) -> list[T]:
    """The cited notes first, in the middle (half of the others before them) or last, or all shuffled by the key."""
    if place == "shuffled":
        mixed = [*cited, *others]
        Random(key).shuffle(mixed)  # noqa: S311
        return mixed
    before = {"first": 0, "middle": len(others) // 2, "last": len(others)}[place]
    return [*others[:before], *cited, *others[before:]]


def _document(
    row: Mapping[str, Any],
    cited: Sequence[Note],
    others: Sequence[Note],
    settings: EvidenceSettings,
    *,
    leaked: int,
    doc_key: int,
    wanted: int,
) -> EvidenceDocument:
    cited = cited[:wanted]
    shown = _within_budget(cited, others[: settings.notes - len(cited)], settings)
    ids = {note.note_idx for note in cited}
    ordered = arrange(
        [note for note in shown if note["note_idx"] in ids],
        [note for note in shown if note["note_idx"] not in ids],
        place=settings.place,
        key=f"{settings.seed}|{doc_key}",
    )
    return {
        "doc_key": doc_key,
        "search_idx": row["search_idx"],
        "query": clean(row["query"]).strip(),
        "notes": ordered,
        "reference": clean(row["dqa_output"]).strip(),
        "cited": [place for place, note in enumerate(ordered, start=1) if note["note_idx"] in ids],
        "leaked": leaked,
    }


def _within_budget(cited: Sequence[Note], others: Sequence[Note], settings: EvidenceSettings) -> list[NoteShown]:
    """The budget goes to the cited notes first; a distractor that has no character left goes."""
    shown: list[NoteShown] = []
    left = settings.context_chars
    for group in (cited, others):
        notes = shown_notes(group, note_chars=settings.note_chars, context_chars=left)
        shown += [note for note in notes if group is cited or note["title"] or note["content"]]
        left = settings.context_chars - sum(len(note["title"]) + len(note["content"]) for note in shown)
    return shown
