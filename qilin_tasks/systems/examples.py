"""Rows of a training config to examples: a clicked note among others that were shown and not clicked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from qilin_tasks.errors import DataError
from qilin_tasks.ranking.requests import clicked_notes
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.sources.schema import DETAILS_COLUMNS


@dataclass(frozen=True)
class Shown:
    """A training request: what its user clicked, and what was shown besides; both distinct, in the list's order."""

    row: int
    query: str
    clicked: tuple[int, ...]
    skipped: tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A query, a note that was clicked for it, and notes that were not."""

    query: str
    clicked: int
    others: tuple[int, ...]


def read_shown(source: QilinSource, config: str, *, rows: int | None) -> list[Shown]:
    """The requests with a query and a click. DataError where there is none, or for ids beyond the notes."""
    details = DETAILS_COLUMNS[config]
    read = source.rows(config, ["query", details], limit=rows)
    source.check_note_ids(config, read, [details])
    found = []
    for row in read:
        clicked = tuple(dict.fromkeys(clicked_notes(row[details])))
        every = dict.fromkeys(one["note_idx"] for one in row[details] or ())
        if clicked and (row["query"] or "").strip():
            skipped = tuple(note for note in every if note not in set(clicked))
            found.append(Shown(row["row"], row["query"], clicked, skipped))
    if not found:
        raise DataError(f"{source.name}: no row of {config!r} has a query and a click: there is nothing to train on")
    return found


def draw(requests: Sequence[Shown], *, epoch: int, seed: int, negatives: int, note_count: int) -> list[Example]:
    """One example a request, shuffled; what it draws depends on seed, epoch and row alone.

    Where fewer notes than `negatives` were skipped, any notes of the corpus make up for them, as in the official code.
    """
    examples = []
    for one in requests:
        generator = random.Random(f"{seed}|{epoch}|{one.row}")  # noqa: S311
        others = generator.sample(one.skipped, min(negatives, len(one.skipped)))
        if len(others) < negatives:
            taken = {*one.clicked, *others}
            spare = min(negatives - len(others) + len(taken), note_count)
            others += [note for note in generator.sample(range(note_count), spare) if note not in taken]
        examples.append(Example(one.query, generator.choice(one.clicked), tuple(others[:negatives])))
    random.Random(f"{seed}|{epoch}").shuffle(examples)  # noqa: S311
    if len({len(example.others) for example in examples}) > 1 or len(examples[0].others) < negatives:
        raise DataError(f"{note_count} notes are too few for {negatives} negatives a request: lower --negatives")
    return examples
