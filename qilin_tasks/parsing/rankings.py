"""What a model wrote as a ranking of numbered candidates -> the ids it ranked, with its faults counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.ranking_chains import BRACKETED, LABELLED, Chain, chains
from qilin_tasks.parsing.ranking_numbers import number_chains
from qilin_tasks.parsing.ranking_objects import object_chains
from qilin_tasks.parsing.ranking_text import normalise

_PLAIN = re.compile(r"\s*\[[0-9]{1,9}\](?:\s*>\s*\[[0-9]{1,9}\])*\s*")
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


def parse_ranking(text: str | None, *, n: int, opened: bool = False) -> ParsedRanking:
    """Read a ranking of the candidates 1..n from any text; never raises, and no ranking is an empty one.

    Bracketed ids come first, then labelled ones (`Passage 3`), then bare numbers where a whole line or list is nothing
    else. The last complete ranking wins, else the longest. `opened`: as in `strip_reasoning`.
    """
    if text is not None and not opened and _PLAIN.fullmatch(text):
        return _count([int(digits) for digits in _DIGITS.findall(text)], n=n, unfinished=False)
    answer = strip_reasoning(text, opened=opened)
    return _count(_choose(normalise(answer.text), n=n), n=n, unfinished=answer.unfinished)


def render_ranking(ids: Iterable[int]) -> str:
    """`[3] > [1] > [2]`: what `parse_ranking` reads back as the same ids."""
    return " > ".join(f"[{i}]" for i in ids)


def _choose(text: str, *, n: int) -> Sequence[int]:
    """The ids of the ranking that counts, as written."""
    bracketed = chains(text, BRACKETED)
    labelled = chains(text, LABELLED)
    mentioned = [chain for chain in labelled if len(chain.ids) > 1]
    invented: Sequence[int] = ()
    for level in (
        object_chains(text),
        [chain for chain in bracketed if chain.structured],
        [chain for chain in labelled if chain.structured],
        number_chains(text),
        bracketed,
        mentioned,
    ):
        best = _best(level, n=n)
        if best is None:
            continue
        if any(1 <= i <= n for i in best.ids):
            return best.ids
        if level is not mentioned and not invented and best in bracketed:
            invented = best.ids
    return invented


def _best(level: Sequence[Chain], *, n: int) -> Chain | None:
    """The last complete chain, else the longest (of equals the last); an echo yields to what follows."""
    best: Chain | None = None
    most = -1
    for chain in level:
        ranked = len({i for i in chain.ids if 1 <= i <= n})
        if best is not None and best.echo and not chain.echo and ranked:
            most = -1
        if ranked >= most:
            best, most = chain, ranked
    return best


def _count(written: Sequence[int], *, n: int, unfinished: bool) -> ParsedRanking:
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
    )
