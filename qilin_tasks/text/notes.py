"""Rankings and notes to what a prompt shows, within a budget of characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

from qilin_tasks.text.tokens import clean

# Bumped when the text of a shown note changes: it is part of the prompt's hash in the signature.
RENDERING = "notes-1"

ELLIPSIS = "…"
_HASHTAG = re.compile(r"#([^#\[\]\n]{1,60})\[话题\]#?")
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_CLUSTER = regex.compile(r"\X")
_PIECE = 256


@dataclass(frozen=True)
class ShownNote:
    """A note as the prompt shows it; `trimmed` tells that the budget cut its content (or its title)."""

    note_idx: int
    title: str
    content: str
    trimmed: bool


def plain(text: str | None) -> str:
    """A note's text for a prompt: `#词[话题]#` becomes `#词`, runs of blanks one blank, empty lines go."""
    text = _HASHTAG.sub(r"#\1 ", clean(text))
    return _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def trim(text: str, budget: int) -> str:
    """`text` in at most `budget` characters, the last of them an ellipsis where something was cut.

    The cut falls between grapheme clusters (UAX 29), so that no emoji sequence, flag, syllable or accented letter is
    broken. Time is linear in the budget and the cluster at the cut.
    """
    if len(text) <= budget:
        return text
    limit, end = max(budget - len(ELLIPSIS), 0), 0
    for cluster_end in _cluster_ends(text):
        if cluster_end > limit:
            break
        end = cluster_end
    return (text[:end].rstrip() + ELLIPSIS)[:budget]


def _cluster_ends(text: str) -> Iterator[int]:
    # Piece by piece: in a row of flags the pattern counts all those before each. What ends a piece may go on behind it.
    begin, size = 0, _PIECE
    while begin < len(text):
        piece, done = text[begin : begin + size], begin
        for cluster in _CLUSTER.finditer(piece):
            if cluster.end() < len(piece) or begin + size >= len(text):
                done = begin + cluster.end()
                yield done
        begin, size = (done, _PIECE) if done > begin else (begin, 2 * size)


def note_budgets(lengths: Sequence[int], *, note_chars: int, context_chars: int) -> list[int]:
    """Characters that each note may take: `note_chars` at most, and `context_chars` over all of them.

    Where the sum is too long, the longest notes give way first (all are cut to one common level), so that a short note
    is never cut for the sake of a long one.
    """
    wanted = [min(length, note_chars) for length in lengths]
    left, budgets = context_chars, [0] * len(wanted)
    for done, index in enumerate(sorted(range(len(wanted)), key=lambda i: (wanted[i], i))):
        budgets[index] = min(wanted[index], left // (len(wanted) - done))
        left -= budgets[index]
    return budgets


def show_notes(
    notes: Iterable[tuple[int, str | None, str | None]], *, note_chars: int, context_chars: int
) -> list[ShownNote]:
    """Notes `(note_idx, title, content)` in the given order, cleaned and trimmed; titles are kept before contents."""
    texts = [(note_idx, plain(title).replace("\n", " "), plain(content)) for note_idx, title, content in notes]
    budgets = note_budgets(
        [len(title) + len(content) for _, title, content in texts], note_chars=note_chars, context_chars=context_chars
    )
    shown = []
    for (note_idx, title, content), budget in zip(texts, budgets, strict=True):
        short_title = trim(title, budget)
        short_content = trim(content, budget - len(short_title))
        shown.append(ShownNote(note_idx, short_title, short_content, (short_title, short_content) != (title, content)))
    return shown
