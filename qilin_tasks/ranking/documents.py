"""Requests and notes to the documents that the ranking tasks ask about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from qilin_tasks.ranking.okapi import okapi_scores
from qilin_tasks.ranking.qrels_check import check_qrels
from qilin_tasks.ranking.requests import Request, read_requests, shuffled
from qilin_tasks.ranking.settings import ListwiseSettings, RankingSettings
from qilin_tasks.ranking.windows import windows
from qilin_tasks.sources.qilin import Note, QilinSource, open_qilin
from qilin_tasks.sources.runs import read_qrels
from qilin_tasks.text.notes import plain, show_notes, trim

# No prompt shows where or when a note was exposed, nor its counters: both give the clicks away.


class Candidate(TypedDict):
    """A note as the prompt shows it."""

    note_idx: int
    title: str
    content: str


class RankingDocument(TypedDict):
    """A request: `windows`, `relevant` and `first_stage` hold ids, 1-based places in `candidates`.

    `relevant` are the clicked ones that are shown, `n_relevant` counts the clicks as qrels rows.
    """

    doc_key: int
    request_id: int
    query: str
    history: list[str]
    candidates: list[Candidate]
    windows: list[list[int]]
    relevant: list[int]
    n_relevant: int
    first_stage: list[int]
    candidates_trimmed: int


class VisionCandidate(Candidate):
    """`image` is the relative path of the cover, blank without one."""

    image: str


class VisionDocument(RankingDocument):
    """A request whose candidates show covers: `images` in shown order, `images_missing` counts those without."""

    candidates: list[VisionCandidate]  # type: ignore[misc]
    images: list[str]
    images_missing: int


class GradedVisionDocument(VisionDocument):
    """A request whose candidates are shown one by one; `history_images`: the clicked notes' covers, blank without."""

    history_images: list[str]


def build_ranking(settings: RankingSettings, *, spec: str | None = None, images: bool = False) -> list[dict[str, Any]]:
    """One document a request. Raises DataError for data that is not as published, before anything is asked."""
    requests, notes = _corpus(open_qilin(spec), settings, images=images)
    if settings.qrels is not None:
        check_qrels(requests, read_qrels(settings.qrels), where=settings.qrels)
    return [document(request, notes, settings, images=images) for request in requests]


_corpora: dict[tuple[Any, ...], tuple[list[Request], dict[int, Note]]] = {}
# A group loads two ways of asking for each of two configs: each config is read once, and only these are kept.
_KEPT = 2


def _corpus(source: QilinSource, settings: RankingSettings, *, images: bool) -> tuple[list[Request], dict[int, Note]]:
    """The requests and the notes their prompts show; a folder whose files changed is read again."""
    key = (
        source.name,
        source.revision,
        source.fingerprint(settings.config),
        settings.config,
        settings.rows,
        settings.history,
        images,
    )
    if key not in _corpora:
        requests = read_requests(source, settings.config, rows=settings.rows)
        notes = source.notes(wanted_notes(requests, settings), images=images)
        while len(_corpora) >= _KEPT:
            del _corpora[next(iter(_corpora))]
        _corpora[key] = (requests, notes)
    return _corpora[key]


def wanted_notes(requests: Sequence[Request], settings: RankingSettings) -> set[int]:
    """The notes whose text a prompt shows."""
    wanted = {note for request in requests for note in request.candidates}
    return wanted.union(*(recent(request, settings) for request in requests))


def recent(request: Request, settings: RankingSettings) -> tuple[int, ...]:
    """The clicked notes that are shown: the first `history` of the list, in its order.

    The description of the release says "20 recently clicked note ids" and no order; the official code takes the first
    ten for DCN-V2 and for the VLM. `history_order.py` reads the order from the data themselves.
    """
    return request.history[: settings.history]


def document(
    request: Request, notes: Mapping[int, Note], settings: RankingSettings, *, images: bool = False
) -> dict[str, Any]:
    """The document of one request; candidate i is shown as `[i]`, in an order that only the seed and the ids decide."""
    order = shuffled(request.candidates, seed=settings.shuffle_seed, key=request.row)
    shown_in = windows(len(order), size=settings.window if isinstance(settings, ListwiseSettings) else len(order))
    query = plain(request.query).replace("\n", " ")
    candidates, trimmed = _shown([notes[note] for note in order], shown_in, settings)
    if images:
        for candidate in candidates:
            candidate["image"] = _cover(notes[candidate["note_idx"]])
    scores = okapi_scores(query, [notes[note].text for note in order])
    return {
        "doc_key": request.row,
        "request_id": request.request_id,
        "query": trim(query, settings.query_chars),
        "history": [
            trim(plain(notes[note].title).replace("\n", " "), settings.note_chars) for note in recent(request, settings)
        ],
        "candidates": candidates,
        "windows": shown_in,
        "relevant": [place for place, note in enumerate(order, start=1) if note in request.clicked],
        "n_relevant": request.n_clicks,
        "first_stage": sorted(range(1, len(order) + 1), key=lambda place: -scores[place - 1]),
        "candidates_trimmed": trimmed,
        **({"history_images": [_cover(notes[note]) for note in recent(request, settings)]} if images else {}),
    }


def _cover(note: Note) -> str:
    return note.images[0] if note.images else ""


def _shown(
    notes: Sequence[Note], shown_in: Sequence[Sequence[int]], settings: RankingSettings
) -> tuple[list[dict[str, Any]], int]:
    """The candidates as the prompts show them, and how many were cut; the same text in every window."""
    note_chars, context_chars = settings.note_chars, settings.note_chars * len(notes)
    if isinstance(settings, ListwiseSettings) and len(shown_in) == 1:
        context_chars = settings.context_chars
    elif isinstance(settings, ListwiseSettings):
        note_chars = min(note_chars, settings.context_chars // max(len(ids) for ids in shown_in))
    shown = show_notes(
        ((note.note_idx, note.title, note.content) for note in notes),
        note_chars=note_chars,
        context_chars=context_chars,
    )
    candidates = [{"note_idx": note.note_idx, "title": note.title, "content": note.content} for note in shown]
    return candidates, sum(note.trimmed for note in shown)
