"""The ladder: each edit's text scored against the untouched one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from qilin_tasks.errors import DataError
from qilin_tasks.results.stats import Interval, mean_interval
from qilin_tasks.text.tokens import tokenize_chars
from qilin_tasks.validity.edits import EDITS
from qilin_tasks.validity.scores import Score

FIRST_CHARS = 400
LEAST_TOKENS = 80
SEEDS = range(5)


def ladder_texts(texts: Sequence[str]) -> list[str]:
    """The first 400 characters of every text that has 80 tokens in them. Raises DataError where none has."""
    cut = [text[:FIRST_CHARS] for text in texts]
    kept = [text for text in cut if len(tokenize_chars(text)) >= LEAST_TOKENS]
    if not kept:
        raise DataError(
            f"none of {len(texts)} texts has {LEAST_TOKENS} tokens in its first {FIRST_CHARS} characters: "
            "name a file of longer notes with --notes"
        )
    return kept


def ladder(texts: Sequence[str], scores: Mapping[str, Score]) -> dict[str, dict[str, Interval | None]]:
    """Metric -> edit -> mean over the texts that the edit changes, with a 95 % interval clustered by text.

    Random edits are made five times, seeded. None where an edit changes nothing.
    """
    pairs: dict[str, tuple[list[str], list[str], list[int]]] = {}
    for name, edit in EDITS.items():
        edited, untouched, numbers = [], [], []
        for seed in SEEDS if edit.draws else SEEDS[:1]:
            for number, text in enumerate(texts):
                new = edit.apply(text, Random(f"{name}|{seed}|{number}"))  # noqa: S311
                if tokenize_chars(new) != tokenize_chars(text):
                    edited.append(new)
                    untouched.append(text)
                    numbers.append(number)
        pairs[name] = edited, untouched, numbers
    return {
        metric: {
            name: mean_interval(score(edited, untouched), clusters=numbers) if edited else None
            for name, (edited, untouched, numbers) in pairs.items()
        }
        for metric, score in scores.items()
    }
