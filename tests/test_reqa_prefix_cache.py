"""When vLLM's prefix cache may be read although log-probabilities are wanted: against a model of its block cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.harness.prefix_cache import PrefixReads

BLOCK = 4
REQUEST = st.tuples(st.lists(st.integers(0, 1), min_size=1, max_size=14), st.integers(0, 14)).map(
    lambda drawn: (drawn[0], min(drawn[1], len(drawn[0]) - 1))
)


def hits(tokens: list[int], cache: set[tuple[int, ...]]) -> int:
    """Tokens that vLLM would take from its cache: whole blocks, and never the whole prompt."""
    found = 0
    for end in range(BLOCK, len(tokens), BLOCK):
        if tuple(tokens[:end]) not in cache:
            break
        found = end
    return found


@given(st.lists(st.lists(REQUEST, max_size=6), max_size=4))
def test_a_cached_block_never_reaches_what_is_scored(batches: list[list[tuple[list[int], int]]]) -> None:
    """Whatever the order inside a batch, and after any earlier batches."""
    reads = PrefixReads(BLOCK)
    cache: set[tuple[int, ...]] = set()
    for batch in batches:
        flags = reads.allowed([tokens for tokens, _ in batch], [context for _, context in batch])
        for position, ((tokens, context), allowed) in enumerate(zip(batch, flags, strict=True)):
            others = [other for number, (other, _) in enumerate(batch) if number != position]
            present = cache | {tuple(other[:end]) for other in others for end in range(BLOCK, len(other) + 1, BLOCK)}
            if allowed:
                # The log-probability of the first scored token comes from the position before it.
                assert hits(tokens, present) <= max(context - 1, 0)
        cache |= {tuple(tokens[:end]) for tokens, _ in batch for end in range(BLOCK, len(tokens) + 1, BLOCK)}


@pytest.mark.parametrize(
    ("one", "other", "context", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 9, 9], 5, [True, True]),  # the shared block ends before the context does
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 9, 9], 4, [False, False]),  # position 3 must be computed
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 5, 6], 4, [True, True]),  # nothing whole is shared
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], 0, [False, False]),
    ],
)
def test_by_hand(one: list[int], other: list[int], context: int, expected: list[bool]) -> None:
    assert PrefixReads(BLOCK).allowed([one, other], [context, context]) == expected


def test_earlier_batches_count() -> None:
    reads = PrefixReads(BLOCK)
    assert reads.allowed([[1, 2, 3, 4, 5]], [2]) == [True]
    assert reads.allowed([[1, 2, 3, 4, 6]], [2]) == [False]
    assert reads.allowed([[1, 2, 3, 4, 6]], [5]) == [True]
