"""What a ranking can look like: the forms of a chain of ids, strongest last."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise


class Form(IntEnum):
    """How a chain is written. MENTION: in a sentence. PROSE and LIST: an id a line with words behind it, LIST numbered.

    PLAIN: nothing but ids (a line, a list, JSON, a table). ARROW: a comparison.
    """

    MENTION = 0
    PROSE = 1
    LIST = 2
    PLAIN = 3
    ARROW = 4


@dataclass(frozen=True)
class Chain:
    """Ids as written, best first, and where in the text they stand.

    `standing`: on a line of their own, or behind a colon. `marked`: in brackets, behind a word or in JSON, no bare
    numbers. `doubtful`: a ranking only if it is a complete one (`3-1-2` may be a date).
    """

    ids: tuple[int, ...]
    form: Form = Form.PLAIN
    line: int = 0
    start: int = 0
    end: int = 0
    standing: bool = True
    marked: bool = True
    doubtful: bool = False


def ascending(ids: tuple[int, ...]) -> bool:
    """Whether the ids stand as they were shown."""
    return all(one < other for one, other in pairwise(ids))
