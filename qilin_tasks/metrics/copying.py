"""How much of an answer is copied from the shown notes: extractive coverage and density.

Grusky, Naaman & Artzi 2018 (Newsroom, arXiv 1804.11283), section 4: greedy longest fragments, left to right. Tokens are
CJK characters and words of other scripts, where the paper has English words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from qilin_tasks.text.tokens import tokenize_chars

#: Tokens beyond these are left out: a runaway repetition must not take minutes.
MOST_ANSWER, MOST_SOURCE = 5_000, 50_000
#: Starts that are tried for one fragment; a source that repeats one token has no better one further on.
MOST_STARTS = 500


def fragments(answer: str | None, sources: Iterable[str | None]) -> tuple[list[int], int]:
    """Lengths of the greedy fragments that the answer shares with a source, and the answer's length, in tokens.

    A fragment lies within one source.
    """
    ours = tokenize_chars(answer)[:MOST_ANSWER]
    theirs: list[str] = []
    for source in sources:
        theirs += [*tokenize_chars(source), ""]  # no token is empty: nothing runs over the end
    del theirs[MOST_SOURCE:]
    # By pairs of tokens: single shared tokens are looked up apart, so that frequent characters cost nothing.
    singles = set(theirs)
    starts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place in range(len(theirs) - 1):
        starts[theirs[place], theirs[place + 1]].append(place)
    lengths, at = [], 0
    while at < len(ours):
        longest = 1 if ours[at] in singles else 0
        if at + 1 < len(ours):
            for start in starts.get((ours[at], ours[at + 1]), ())[:MOST_STARTS]:
                length = 2
                limit = min(len(ours) - at, len(theirs) - start)
                while length < limit and ours[at + length] == theirs[start + length]:
                    length += 1
                longest = max(longest, length)
                if longest == len(ours) - at:
                    break
        if longest:
            lengths.append(longest)
        at += max(longest, 1)
    return lengths, len(ours)


def copy_coverage(answer: str | None, sources: Iterable[str | None]) -> float:
    """Share of the answer's tokens that lie in a shared fragment, 0..1; 0 for an empty answer or without sources."""
    lengths, total = fragments(answer, sources)
    return sum(lengths) / total if total else 0.0


def copy_density(answer: str | None, sources: Iterable[str | None]) -> float:
    """Mean length of the shared fragment that a token of the answer lies in: 0 to the answer's length in tokens."""
    lengths, total = fragments(answer, sources)
    return sum(length**2 for length in lengths) / total if total else 0.0
