"""Edits of a text whose effect on its meaning is known: the rungs of the ladder."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_PREDICATE = re.compile("(?<![不没])(可以|能|要|会|是|有)")
_DIGIT = re.compile(r"\d", re.ASCII)
_AFTER_SENTENCE = re.compile(r"(?<=[。！？!?\n])")
_TRIES = 20


def negate(text: str, random: Random) -> str:
    """Every 可以, 能, 要, 会, 是 and 有 with 不 (没 before 有) in front, where it has none."""
    return _PREDICATE.sub(lambda match: ("没" if match[1] == "有" else "不") + match[1], text)


def change_digits(text: str, random: Random) -> str:
    """Every ASCII digit becomes another one."""
    return _DIGIT.sub(lambda match: str((int(match[0]) + random.randint(1, 9)) % 10), text)


def drop_last_fifth(text: str, random: Random) -> str:
    """The first four fifths of the characters."""
    return text[: len(text) * 4 // 5]


def shuffle_sentences(text: str, random: Random) -> str:
    """The same sentences in another order; a text of one sentence stays as it is."""
    sentences = [piece.strip() for piece in _AFTER_SENTENCE.split(text) if piece.strip()]
    if len(set(sentences)) < 2:
        return text
    order = sentences[:]
    for _ in range(_TRIES):
        random.shuffle(order)
        if order != sentences:
            break
    return "\n".join(order)


@dataclass(frozen=True)
class Edit:
    """`harm` is what a reader loses: a metric that sees meaning orders the edits by it; `draws` where it is random."""

    about: str
    apply: Callable[[str, Random], str]
    harm: str
    draws: bool = False


EDITS: dict[str, Edit] = {
    "negated": Edit("可以, 能, 要, 会, 是, 有 negated", negate, "every claim is false"),
    "digits": Edit("every digit another", change_digits, "every number is false", draws=True),
    "dropped": Edit("last fifth dropped", drop_last_fifth, "a fifth of the facts is missing"),
    "shuffled": Edit("same sentences, shuffled", shuffle_sentences, "none: the same facts", draws=True),
}
