"""Exact match and token F1 of a short answer, normalised as in SQuAD's official evaluation (v1.1)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

Tokenizer = Callable[[str], Sequence[str]]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces: the official `normalize_answer`."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(hypothesis: str, references: Sequence[str]) -> float:
    """1.0 where the normalised hypothesis equals any normalised reference, else 0.0. Needs a reference.

    >>> exact_match("The Danube.", ["Danube", "Rhine"])
    1.0
    """
    answer = normalize_answer(hypothesis)
    return float(any(answer == normalize_answer(reference) for reference in references))


def token_f1(hypothesis: str, references: Sequence[str], *, tokenizer: Tokenizer = str.split) -> float:
    """The best bag-of-tokens F1 against any reference, in 0..1; 0 without a common token. Needs a reference.

    The official tokens are those between spaces; a script that writes none needs another `tokenizer`.

    >>> token_f1("the blue Danube", ["Danube"])
    0.6666666666666666
    """
    answer = tokenizer(normalize_answer(hypothesis))
    return max(_f1(answer, tokenizer(normalize_answer(reference))) for reference in references)


def _f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(answer) & Counter(gold)).values())
    if not common:
        return 0.0
    precision, recall = common / len(answer), common / len(gold)
    return 2 * precision * recall / (precision + recall)
