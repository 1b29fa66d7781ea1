"""Agreement of the facts that two texts state: numbers, dates and times by value, claims by predicate and sign.

After the idea of factual F1 in summarisation (Goodrich et al. 2019, arXiv 1905.13322), without a model. Quantities and
terms must be equal in canonical form; claims of one predicate and sign agree by the Dice coefficient of their clauses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from qilin_tasks.text.facts.extract import VERSION, Fact, extract

#: Clauses with this Dice coefficient speak of the same thing.
SAME_CLAUSE = 0.5


def fact_f1(hypothesis: str | None, reference: str | None) -> float:
    """F1 over the facts of both texts, 0..1: 2 x agreement / (facts of both).

    1 for the text itself. Where neither text states a fact, 1 for an answer and 0 for none.

    >>> fact_f1("煮8分钟", "煮8分钟"), fact_f1("煮3分钟", "煮8分钟")
    (1.0, 0.0)
    """
    ours, theirs = extract(hypothesis), extract(reference)
    if not ours and not theirs:
        return float(bool((hypothesis or "").strip()))
    claims, others = ([fact for fact in facts if fact.kind == "claim"] for facts in (ours, theirs))
    agreement = _equal(ours, theirs) + _agreeing_claims(claims, others)
    return 2 * agreement / (len(ours) + len(theirs))


def supported_rate(hypothesis: str | None, sources: Iterable[str | None]) -> float:
    """Share of the hypothesis's facts that a source states; 0 where it states none."""
    ours = extract(hypothesis)
    if not ours:
        return 0.0
    held = _by_key(fact for source in sources for fact in extract(source))
    return sum(_is_stated(fact, held) for fact in ours) / len(ours)


def contradicted_rate(hypothesis: str | None, reference: str | None) -> float:
    """Share of the hypothesis's facts that the reference denies: another value or the other sign in the same clause."""
    ours, theirs = extract(hypothesis), extract(reference)
    if not ours or not theirs:
        return 0.0
    held = _by_key(theirs)
    return sum(not _is_stated(fact, held) and any(_denies(other, fact) for other in theirs) for fact in ours) / len(
        ours
    )


def fact_signature() -> str:
    """The recipe: the extractor's version and the threshold of same clauses."""
    return f"{VERSION}+dice{SAME_CLAUSE}"


def dice(first: frozenset[str], second: frozenset[str]) -> float:
    """2 |A ∩ B| / (|A| + |B|); 1 for two empty sets."""
    total = len(first) + len(second)
    return 2 * len(first & second) / total if total else 1.0


def _by_key(facts: Iterable[Fact]) -> dict[tuple[str, bool], list[Fact]]:
    found: dict[tuple[str, bool], list[Fact]] = defaultdict(list)
    for fact in facts:
        found[fact.key, fact.affirmed].append(fact)
    return found


def _is_stated(fact: Fact, held: dict[tuple[str, bool], list[Fact]]) -> bool:
    same = held.get((fact.key, fact.affirmed), ())
    if fact.kind != "claim":
        return bool(same)
    return any(dice(fact.context, other.context) >= SAME_CLAUSE for other in same)


def _unit(fact: Fact) -> str:
    return fact.key.split(":")[0] if ":" in fact.key else fact.key.lstrip("-第0123456789.~/")


def _denies(other: Fact, fact: Fact) -> bool:
    if other.kind != fact.kind or fact.kind == "term" or dice(fact.context, other.context) < SAME_CLAUSE:
        return False
    if fact.kind == "claim":
        return other.key == fact.key and other.affirmed != fact.affirmed
    return _unit(other) == _unit(fact)


def _equal(ours: Sequence[Fact], theirs: Sequence[Fact]) -> int:
    """Quantities and terms that both state, repetitions included."""
    some, others = (Counter((f.kind, f.key) for f in facts if f.kind != "claim") for facts in (ours, theirs))
    return sum((some & others).values())


def _agreeing_claims(ours: Sequence[Fact], theirs: Sequence[Fact]) -> float:
    """Sum of the Dice coefficients of a one-to-one matching, best pairs first."""
    others = _by_key(theirs)
    total = 0.0
    for key, some in _by_key(ours).items():
        pairs = sorted(
            (
                (dice(a.context, b.context), -i, -j)
                for i, a in enumerate(some)
                for j, b in enumerate(others.get(key, ()))
            ),
            reverse=True,
        )
        used_a: set[int] = set()
        used_b: set[int] = set()
        for value, i, j in pairs:
            if i not in used_a and j not in used_b:
                total += value
                used_a.add(i)
                used_b.add(j)
    return total
