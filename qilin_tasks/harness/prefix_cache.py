"""Which prompts may be read from vLLM's prefix cache although log-probabilities of their end are wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Tokens = Sequence[int]


class PrefixReads:
    """Decides for each request whether a cached beginning can only lie before what is scored.

    vLLM keeps whole blocks of `block_size` tokens. A log-probability needs the position before its token computed, so
    a cached block must not reach beyond position `context - 1`. `seen` remembers every block that was ever sent.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._seen: set[int] = set()

    def allowed(self, requests: Sequence[Tokens], contexts: Sequence[int]) -> list[bool]:
        """One flag a request; `contexts[i]` is the number of its tokens that aren't scored (0 for none)."""
        prefixes = [self._prefixes(tokens) for tokens in requests]
        here = Counter(prefix for found in prefixes for prefix in found)
        flags = []
        for found, context in zip(prefixes, contexts, strict=True):
            # The first block boundary that lies beyond the last position that may come from the cache.
            forbidden = found[max(context - 1, 0) // self.block_size :]
            flags.append(not any(here[prefix] > 1 or prefix in self._seen for prefix in forbidden[:1]))
        self._seen.update(here)
        return flags

    def _prefixes(self, tokens: Tokens) -> list[int]:
        """A hash of the tokens up to each block boundary."""
        hashes = []
        value = 0
        for end in range(self.block_size, len(tokens) + 1, self.block_size):
            value = hash((value, *tokens[end - self.block_size : end]))
            hashes.append(value)
        return hashes
