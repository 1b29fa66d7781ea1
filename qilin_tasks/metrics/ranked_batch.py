"""Rankings of numbered candidates, scored together: what the metrics of written rankings read.

Strict: what was not ranked is not retrieved. Repaired: the rest follows in shown order, which has to be shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from qilin_tasks.metrics.hits import Floats
from qilin_tasks.metrics.metric import Metric, rows
from qilin_tasks.parsing.rankings import ParsedRanking
from qilin_tasks.parsing.simple_ranking import simple_ranking

#: What the two readings of a ranking add to a metric's name.
SUFFIXES = {"": "what was not ranked is not retrieved", "_repaired": "the rest follows in shown order"}


def strict_and_repaired(
    table: Mapping[str, tuple[str, Callable[[Any, str], Floats]]], *, headline: Container[str]
) -> dict[str, Metric[Any]]:
    """Rows `name` and `name_repaired` for each (about, function of the batch and the suffix, "" or "_repaired").

    Systems are compared by the strict rows of `headline`.
    """
    return {
        f"{name}{suffix}": Metric[Any](
            about=f"{about}; {how}",
            score=partial(_values, function=function, suffix=suffix),
            higher_is_better=True,
            headline=not suffix and name in headline,
        )
        for suffix, how in SUFFIXES.items()
        for name, (about, function) in table.items()
    }


def _values(batch: Any, *, function: Callable[[Any, str], Floats], suffix: str) -> list[float]:
    values: list[float] = function(batch, suffix).tolist()
    return values


def _rate(
    about: str, of: Callable[[Sequence[ParsedRanking], int], float], *, higher_is_better: bool = False
) -> Metric[Any]:
    """A row over `batch.parsed` (the parsed answers of each document) and `batch.shown` (candidates in its prompts)."""
    return Metric[Any](
        about=about,
        score=lambda batch: [of(parsed, shown) for parsed, shown in zip(batch.parsed, batch.shown, strict=True)],
        higher_is_better=higher_is_better,
    )


def _written(parsed: Sequence[ParsedRanking]) -> int:
    return max(sum(len(ranking.ids) + ranking.duplicates + ranking.invented for ranking in parsed), 1)


RATES: dict[str, Metric[Any]] = {
    "valid_rate": _rate(
        "share of documents whose every answer ranks each candidate exactly once and nothing else",
        lambda parsed, shown: float(all(ranking.valid for ranking in parsed)),
        higher_is_better=True,
    ),
    "duplicate_rate": _rate(
        "repeated ids, as a share of the ids written",
        lambda parsed, shown: sum(ranking.duplicates for ranking in parsed) / _written(parsed),
    ),
    "missing_rate": _rate(
        "candidates not ranked, as a share of those shown",
        lambda parsed, shown: sum(ranking.missing for ranking in parsed) / shown,
    ),
    "invented_rate": _rate(
        "ids that were not shown, as a share of the ids written",
        lambda parsed, shown: sum(ranking.invented for ranking in parsed) / _written(parsed),
    ),
    "unfinished_reasoning_rate": _rate(
        "share of answers whose reasoning was never closed",
        lambda parsed, shown: sum(ranking.unfinished for ranking in parsed) / len(parsed),
    ),
}


#: What is added to a metric's name where the answers were read by RankLLM's rule, which appends what isn't ranked.
SIMPLE = "_simple"


def read_simply(text: str | None, *, n: int) -> ParsedRanking:
    """An answer by RankLLM's rule, in the place of `parsing.rankings.parse_ranking`."""
    return whole(simple_ranking(text, n))


def simple_columns(batch: Any, table: Mapping[str, Metric[Any]], names: Sequence[str]) -> list[dict[str, float]]:
    """`name_simple` a document, from a batch that was read by `read_simply`."""
    return rows({f"{name}{SIMPLE}": table[f"{name}_repaired"].score(batch) for name in names})


def whole(ids: Sequence[int]) -> ParsedRanking:
    """The ranking that scores of all candidates give: each once, none missing."""
    return ParsedRanking(tuple(ids), 0, 0, 0, valid=True, unfinished=False)
