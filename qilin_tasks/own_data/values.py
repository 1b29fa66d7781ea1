"""Single values of a user's rows: texts, lists, notes; what can't be read is a ValueError with the reason."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qilin_tasks.text.tokens import clean, tokenize_chars

#: Each column's names: the first is the documented one.
QUESTION_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query"),
    "answers": ("answers", "answer", "references", "reference"),
    "notes": ("notes",),
    "cited": ("cited",),
    "id": ("id",),
}
NOTE_COLUMNS: Mapping[str, tuple[str, ...]] = {"id": ("id",), "title": ("title",), "text": ("text", "content")}
#: What the published layout writes where there is no answer.
NO_ANSWER = "-1"


class NoteText(NamedTuple):
    """A note as the user gave it; `id` is empty where none was given."""

    id: str
    title: str
    text: str


def pick(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the one column among `names` that is there and not empty; None where none is."""
    held = [name for name in names if not _is_absent(values.get(name))]
    if len(held) > 1:
        raise ValueError(f"{' and '.join(held)} mean the same: give one of them")
    return values[held[0]] if held else None


def text_of(value: Any) -> str:
    """A text, or a number as text, without white space around it; empty for None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError(f"a text is expected, not {value!s:.60}")  # noqa: TRY004
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else clean(str(value)).strip()


def list_of(value: Any, *, as_text: bool) -> list[Any]:
    """A list, or what stands alone as a list of one; `as_text` (CSV) reads a JSON list."""
    if as_text and isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]  # A text that begins with a bracket, as `[1] says so`.
    if _is_absent(value):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def answers_of(value: Any, *, as_text: bool) -> tuple[str, ...]:
    """One reference or several, each once; every one has something to compare with."""
    answers = tuple(dict.fromkeys(map(text_of, list_of(value, as_text=as_text))))
    if not answers:
        raise ValueError("missing: give a text, or a list of texts that are all right")
    for answer in answers:
        if answer == NO_ANSWER:
            raise ValueError(f"{NO_ANSWER!r} stands for 'no answer' in the published layout: write it with its unit")
        if not tokenize_chars(answer):
            raise ValueError(f"{answer!r:.40} has no letter, digit or ideograph, so nothing could match it")
    return answers


def note_of(value: Any) -> NoteText:
    """A note: a text, or an object with text, title and id."""
    if not isinstance(value, Mapping):
        value = {"text": value}
    note = NoteText(*(text_of(pick(value, NOTE_COLUMNS[name])) for name in NoteText._fields))
    if not note.text and not note.title:
        raise ValueError("a note without text" + (f" ({note.id})" if note.id else ""))
    return note


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
