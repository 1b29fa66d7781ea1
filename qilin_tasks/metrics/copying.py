"""How much of an answer is copied from the shown notes: extractive coverage and density.

Grusky, Naaman & Artzi 2018 (Newsroom, arXiv 1804.11283), section 4: greedy longest fragments, left to right. Tokens are
CJK characters and words of other scripts, where the paper has English words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qilin_tasks.text.tokens import Codes, tokenize_chars

#: Tokens beyond these are left out: a runaway repetition must not take minutes.
MOST_ANSWER, MOST_SOURCE = 5_000, 50_000


def fragments(answer: str | None, sources: Iterable[str | None]) -> tuple[list[int], int]:
    """Lengths of the greedy fragments that the answer shares with a source, and the answer's length, in tokens.

    A fragment lies within one source.
    """
    ours = tokenize_chars(answer)[:MOST_ANSWER]
    theirs: list[str] = []
    for source in sources:
        theirs += [*tokenize_chars(source), ""]  # no token is empty: nothing runs over the end
    del theirs[MOST_SOURCE:]
    # A character a token: the longest fragment is then a matter of finding a string in another.
    codes = Codes()
    answer_codes, source_codes = ("".join(map(codes.__getitem__, tokens)) for tokens in (ours, theirs))
    lengths, at = [], 0
    while at < len(ours):
        end, place = at + 1, source_codes.find(answer_codes[at])
        while place >= 0 and end < len(ours):
            # What goes on here is longer already; else it may go on at a later place of the same fragment.
            if source_codes[place + end - at : place + end - at + 1] == answer_codes[end]:
                end += 1
                continue
            further = source_codes.find(answer_codes[at : end + 1], place + 1)
            if further < 0:
                break
            place, end = further, end + 1
        if place >= 0:
            lengths.append(end - at)
        at = end
    return lengths, len(ours)


class Copied(NamedTuple):
    """`coverage`: share of the answer's tokens in a shared fragment, 0..1; 0 for an empty answer or without sources.
    `density`: mean length of the fragment that a token lies in, 0 to the answer's length in tokens.
    """

    coverage: float
    density: float


def copied(answer: str | None, sources: Iterable[str | None]) -> Copied:
    """Coverage and density of the answer over the sources."""
    lengths, total = fragments(answer, sources)
    if not total:
        return Copied(0.0, 0.0)
    return Copied(sum(lengths) / total, sum(length**2 for length in lengths) / total)
