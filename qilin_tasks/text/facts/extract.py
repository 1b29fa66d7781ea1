"""The facts of a text, each with the words around it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from qilin_tasks.text.facts.polarity import claims
from qilin_tasks.text.facts.quantities import quantities
from qilin_tasks.text.facts.units import UNITS
from qilin_tasks.text.stop_words import CJK_STOP_WORDS, ENGLISH_STOP_WORDS
from qilin_tasks.text.tokens import normalize, tokenize_chars

VERSION = "facts-1"
# In Chinese text a Latin word is a name (a brand, a product, a substance); in English these are the content words.
_TERM = re.compile(r"(?<![a-z0-9])[a-z]{4,}(?![a-z0-9])")
_CLAUSE = re.compile(r"(?:[^\n、。!?;,….]|\.(?=[^\s]))+")
_DIGITS = re.compile(r"[\d,.]*\d", re.ASCII)
_NO_TERMS = ENGLISH_STOP_WORDS | CJK_STOP_WORDS | UNITS.keys() | {"have", "does", "would", "could", "should", "from"}
#: Beyond this many characters a text is cut: no answer is longer, and a runaway repetition must not take minutes.
MOST_CHARS = 20_000


class Fact(NamedTuple):
    """`kind` is quantity, claim or term; `key` the canonical form, predicate or word; `context` the clause's tokens."""

    kind: str
    key: str
    affirmed: bool
    context: frozenset[str]

    @property
    def label(self) -> str:
        """`120元`, `+可以`, `-能`: as in the labelled sentences."""
        return self.key if self.kind != "claim" else ("+" if self.affirmed else "-") + self.key


def prepare(text: str | None) -> str:
    """The comparing form: NFKC and lower case, while a full-width comma stays apart from one within a number."""
    return normalize((text or "")[:MOST_CHARS].replace("，", "、"))


@lru_cache(maxsize=16384)
def extract(text: str | None) -> tuple[Fact, ...]:
    """The facts of a text, in order of its clauses. Never raises."""
    found: list[Fact] = []
    prepared = prepare(text)
    words = dict.fromkeys(_TERM.findall(prepared))
    terms = [Fact("term", word, True, frozenset()) for word in words if word not in _NO_TERMS]
    for clause in _clauses(prepared):
        spans, said = list(quantities(clause)), list(claims(clause))
        if not spans and not said:
            continue
        # Within a claim's surroundings a number's value is its own fact's business.
        around = frozenset(tokenize_chars(_DIGITS.sub(" ", clause)))
        for _, _, form in spans:
            found.append(Fact("quantity", form, True, around))
        covered = {place for start, end, form in spans for place in range(start, end)}
        for start, _, predicate, affirmed in said:
            if start not in covered:
                found.append(Fact("claim", predicate, affirmed, around - set(predicate) - set("不没")))
    return (*found, *terms)


def _clauses(text: str) -> list[str]:
    # A comma or stop between digits belongs to the number.
    return _CLAUSE.findall(re.sub(r"(?<=\d),(?=\d{3})", "", text))
