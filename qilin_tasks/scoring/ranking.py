"""Parsed rankings to strict and repaired metrics and to the rates of what was wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qilin_tasks.metrics.ranking import repair, score_ranking
from qilin_tasks.parsing.rankings import ParsedRanking

RATES = ("valid_rate", "duplicate_rate", "missing_rate", "invented_rate", "unfinished_reasoning_rate")


def repaired_names(measures: Sequence[str]) -> tuple[str, ...]:
    """`mrr@10_repaired` for `mrr@10`."""
    return tuple(f"{measure}_repaired" for measure in measures)


def strict_and_repaired(
    ranked: Sequence[int],
    *,
    n: int,
    relevant: Collection[int],
    n_relevant: int,
    measures: Sequence[str],
) -> dict[str, float]:
    """Values of what was ranked, ids of 1..n (the rest is not retrieved), and with the rest appended in shown order."""
    strict = score_ranking(ranked, relevant, measures=measures, n_relevant=n_relevant)
    whole = score_ranking(repair(ranked, range(1, n + 1)), relevant, measures=measures, n_relevant=n_relevant)
    return {**strict, **dict(zip(repaired_names(measures), whole.values(), strict=True))}


def rates(parsed: Sequence[ParsedRanking], *, shown: int) -> dict[str, float]:
    """RATES of one document's answers: duplicates and inventions as shares of the ids written, missing of those shown.

    `valid_rate` is 1 where every answer ranks each candidate exactly once and nothing else; `shown` counts the
    candidates over all prompts of the document.
    """
    ids = sum(len(ranking.ids) for ranking in parsed)
    duplicates = sum(ranking.duplicates for ranking in parsed)
    invented = sum(ranking.invented for ranking in parsed)
    written = max(ids + duplicates + invented, 1)
    return {
        "valid_rate": float(all(ranking.valid for ranking in parsed)),
        "duplicate_rate": duplicates / written,
        "missing_rate": sum(ranking.missing for ranking in parsed) / shown,
        "invented_rate": invented / written,
        "unfinished_reasoning_rate": sum(ranking.unfinished for ranking in parsed) / len(parsed),
    }
