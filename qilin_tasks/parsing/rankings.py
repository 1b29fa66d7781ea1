"""What a model wrote as a ranking of numbered candidates -> the ids it ranked, with its faults counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.ranking_chains import chains, enclosed_chains
from qilin_tasks.parsing.ranking_choice import choose
from qilin_tasks.parsing.ranking_forms import Chain
from qilin_tasks.parsing.ranking_numbers import number_chains
from qilin_tasks.parsing.ranking_objects import object_parts
from qilin_tasks.parsing.ranking_symbols import fold
from qilin_tasks.parsing.ranking_tables import table_parts
from qilin_tasks.parsing.ranking_text import normalise

_PLAIN = re.compile(r"\s*\[[0-9]{1,9}\](?:\s*>\s*\[[0-9]{1,9}\])*\s*")
_END = 40_000
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class ParsedRanking:
    """`ids`: 1-based, distinct, within 1..n, best first; the counts are of the chosen ranking, not of all the text."""

    ids: tuple[int, ...]
    duplicates: int
    """Mentions of an id that was already ranked."""
    invented: int
    """Mentions of numbers outside 1..n."""
    missing: int
    """Candidates that were not ranked."""
    valid: bool
    """Every candidate exactly once and nothing else."""
    unfinished: bool
    """The reasoning never ended, so there is no answer."""
    unknown_marks: int = 0
    """As in `Answer`."""


def parse_ranking(text: str | None, *, n: int, opened: bool = False) -> ParsedRanking:
    """Read a ranking of the candidates 1..n from any text; never raises, and no ranking is an empty one.

    Ids are those in brackets, behind a word (`Passage 3`), in JSON and tables, and bare numbers where a comparison, a
    line or a list is nothing else; which ranking counts, `ranking_choice.choose` says. Of more than 80,000 characters
    the first and the last 40,000 are read. `opened`: as in `strip_reasoning`.

    >>> parse_ranking("[2] > [1] > [9]", n=3)
    ParsedRanking(ids=(2, 1), duplicates=0, invented=1, missing=1, valid=False, unfinished=False, unknown_marks=0)
    """
    if text is not None and not opened and _PLAIN.fullmatch(text):
        return _count([int(digits) for digits in _DIGITS.findall(text)], n=n, unfinished=False)
    answer = strip_reasoning(text, opened=opened)
    found, lines = _chains(answer.text)
    return _count(choose(found, lines, n=n), n=n, unfinished=answer.unfinished, unknown_marks=answer.unknown_marks)


def render_ranking(ids: Iterable[int]) -> str:
    """`[3] > [1] > [2]`: what `parse_ranking` reads back as the same ids."""
    return " > ".join(f"[{i}]" for i in ids)


def _ends(text: str) -> str:
    """The text, or both its ends where it is too long for a ranking: a model that loops fills its whole budget."""
    return text if len(text) <= 2 * _END else f"{text[:_END]}\n{text[-_END:]}"


def _chains(text: str) -> tuple[list[Chain], list[str]]:
    """All chains of ids in a text, and the lines of its normalised form in which they stand."""
    found: list[Chain] = []
    lines: list[str] = []
    for part in object_parts(_ends(fold(_ends(text)))):
        if isinstance(part, Chain):
            found.append(replace(part, line=len(lines)))
            lines.append("")
            continue
        for piece in table_parts(part):
            if isinstance(piece, Chain):
                found.append(replace(piece, line=len(lines)))
                lines.append("")
            else:
                lines += normalise(piece).split("\n")
    whole = "\n".join(lines)
    return [*found, *chains(whole), *enclosed_chains(whole), *number_chains(whole)], lines


def _count(written: Sequence[int], *, n: int, unfinished: bool, unknown_marks: int = 0) -> ParsedRanking:
    ids = tuple(dict.fromkeys(i for i in written if 1 <= i <= n))
    inside = sum(1 <= i <= n for i in written)
    duplicates, invented, missing = inside - len(ids), len(written) - inside, max(n, 0) - len(ids)
    return ParsedRanking(
        ids=ids,
        duplicates=duplicates,
        invented=invented,
        missing=missing,
        valid=n > 0 and not (duplicates or invented or missing),
        unfinished=unfinished,
        unknown_marks=unknown_marks,
    )
