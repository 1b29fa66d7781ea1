"""The table and the sentences of the steps `lm_*`: a language model as retriever, and as a fusion's third voice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = {"dense": "E5"}
WORDS = ("above", "not to be told from", "below")
INTRO = """
## A language model as retriever

The first questions of each set ask its whole pool of sentences. Three ways that are this project's tasks: `likelihood`
orders candidates by the model's log-likelihood of the question given the sentence (UPR, arXiv 2204.07496), `listwise`
by what it writes as a ranking (RankGPT, arXiv 2304.09542; strict, and with what it left out appended in the order
shown, which is drawn at random), `written` has it write the answer sentence, which BM25 looks up (HyDE, arXiv
2212.10496). The first two see the {candidates} first of RRF over BM25 and E5 ("RRF, candidates": a question without an
answer sentence among them counts 0), so that row, not the whole pool's, is what they are to beat.

RankNet and a weighted sum tuned in the fold then read BM25 and E5 (two) or these and Gemma's likelihoods (three), five
folds by paragraph, means of 5 seeds. With so few questions a fold teaches little: compare two with three, not with the
tables above. Intervals: paired bootstrap over paragraphs.
"""


def how(difference: Mapping[str, Any]) -> str:
    """What a paired interval carries, in words."""
    above, alike, below = WORDS
    return above if difference["low"] > 0 else below if difference["high"] < 0 else alike


def named(system: str) -> str:
    """A system as the page calls it."""
    return SHOWN.get(system, system)


def told(differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line a comparison: first, how, second, and by how much with the interval."""
    return [
        f"{named(row['first'])} is {how(row)} {named(row['second'])} "
        f"({row['minus']:+.3f}, {row['low']:+.3f} to {row['high']:+.3f})"
        for row in differences
    ]


def verdict(results: Sequence[Mapping[str, Any]]) -> str:
    """On how many sets each comparison carries, over all tables."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for row in result["differences"]:
            found.setdefault((row["first"], row["second"]), []).append(how(row))
    lines = []
    for (first, second), hows in found.items():
        counted = [f"{words} on {hows.count(words)}" for words in WORDS if words in hows]
        lines.append(f"* {named(first)} against {named(second)}, {len(hows)} sets: {', '.join(counted)}.")
    return "\n".join(lines)


def table(result: Mapping[str, Any]) -> str:
    """Systems as rows with intervals; of what is learned the least and greatest seed; then the differences in words."""
    lines = ["| system | MRR | 95 % |", "|---|---:|---|"]
    for row in result["rows"]:
        seeds = result["seeds"].get(row["system"])
        spread = f" ({min(seeds):.3f} to {max(seeds):.3f})" if seeds else ""
        lines.append(f"| {named(row['system'])}{spread} | {row['mrr']:.3f} | {row['low']:.3f} to {row['high']:.3f} |")
    return "\n".join([*lines, "", *(f"* {line}." for line in told(result["differences"]))])


def plotted(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows as `interval_plot` takes them, models by their short names."""
    return [
        {**row, "system": row["system"].replace("-135M-Instruct", "").replace("-3-270m", "")} for row in result["rows"]
    ]
