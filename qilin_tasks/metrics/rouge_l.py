"""ROUGE-L (Lin 2004) at sentence level, with rouge-score 0.1.2's numbers for the same tokenizer.

Only the length of the longest common subsequence is needed: rapidfuzz gives it bit-parallel, hundreds of times faster
than rouge-score's table. rouge-score's own tokenizer keeps ASCII only, so that any Chinese text scores 0 there.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.text.tokens import MAX_CODES, TOKENIZERS, Codes, Tokenizer, encode_chars, tokenize_chars

# A pair with at most so many tokens, after at most so many codes from earlier pairs, can't run out of codes.
_FEW = MAX_CODES * 3 // 8
_SHOWN = 10


class RougeL(NamedTuple):
    """Precision, recall and F1 of the longest common subsequence, each in 0..1."""

    precision: float
    recall: float
    f1: float


def rouge_l(hypothesis: str | None, reference: str | None, *, tokenizer: Tokenizer = tokenize_chars) -> RougeL:
    """ROUGE-L of one pair: 0 where either side has no tokens, F1 with beta 1. Never raises on any text.

    Same values as `rouge_score.rouge_scorer.RougeScorer(["rougeL"], tokenizer=...)` for the same tokenizer.

    >>> rouge_l("防晒", "防晒霜很好").precision, rouge_l("防晒", "防晒霜很好").recall
    (1.0, 0.4)
    """
    return _score(hypothesis or "", reference or "", tokenizer, Codes())


def rouge_l_batch(
    hypotheses: Sequence[str | None], references: Sequence[str | None], *, tokenizer: Tokenizer = tokenize_chars
) -> list[float]:
    """ROUGE-L F1 of each pair, as `rouge_l` gives it. Raises ValueError where the lengths differ.

    >>> rouge_l_batch(["防晒霜", ""], ["防晒霜", "防晒霜"])
    [1.0, 0.0]
    """
    codes = Codes()
    scores = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        if len(codes) > _FEW:
            codes = Codes()
        scores.append(_score(hypothesis or "", reference or "", tokenizer, codes).f1)
    return scores


def _score(hypothesis: str, reference: str, tokenizer: Tokenizer, codes: Codes) -> RougeL:
    ours, theirs = _sequences(hypothesis, reference, tokenizer, codes)
    common = LCSseq.similarity(ours, theirs) if ours and theirs else 0
    if not common:
        return RougeL(0.0, 0.0, 0.0)
    precision, recall = common / len(ours), common / len(theirs)
    # rouge-score's order of operations, so that the numbers agree to the last bit.
    return RougeL(precision, recall, 2 * precision * recall / (precision + recall))


def _sequences(
    hypothesis: str, reference: str, tokenizer: Tokenizer, codes: Codes
) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Both token sequences with small values instead of tokens: strings are fastest, and nothing is left to hashes."""
    if tokenizer is tokenize_chars and len(hypothesis) + len(reference) <= _FEW:
        return encode_chars(hypothesis, codes), encode_chars(reference, codes)
    ours, theirs = tokenizer(hypothesis), _reference_tokens(reference, tokenizer)
    if len(ours) + len(theirs) <= _FEW:
        return "".join(map(codes.__getitem__, ours)), "".join(map(codes.__getitem__, theirs))
    numbers: dict[str, int] = {}
    for token in (*ours, *theirs):
        numbers.setdefault(token, len(numbers))
    return [numbers[token] for token in ours], [numbers[token] for token in theirs]


@lru_cache(maxsize=8192)
def _reference_tokens(reference: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    # The same references come back under every condition, and jieba takes milliseconds for each.
    return tuple(map(sys.intern, tokenizer(reference)))


def check_references(
    references: Sequence[str | None], *, keys: Sequence[object] | None = None, tokenizer: Tokenizer = tokenize_chars
) -> None:
    """Raise DataError, before any generation, where a reference has no tokens: every score against it would be 0.

    `keys` names the documents in the message (default: their positions).
    """
    names = range(len(references)) if keys is None else keys
    bare = [
        (key, reference) for key, reference in zip(names, references, strict=True) if not tokenizer(reference or "")
    ]
    if bare:
        shown = ", ".join(f"{key!r} ({(reference or '')[:40]!r})" for key, reference in bare[:_SHOWN])
        more = f" and {len(bare) - _SHOWN} more" if len(bare) > _SHOWN else ""
        raise DataError(
            f"{len(bare)} of {len(references)} reference answers have no tokens to score: document {shown}{more}. "
            "A reference needs at least one letter, digit or CJK character: correct or drop these rows, "
            "or choose a tokenizer that reads their script"
        )


def rouge_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name in `TOKENIZERS`; SettingError for another name."""
    if name not in TOKENIZERS:
        raise unknown("ROUGE tokenizer", name, TOKENIZERS)
    return TOKENIZERS[name]


def rouge_signature(tokenizer: str) -> str:
    """The recipe, such as `rougeL:char+rouge-score0.1.2`: the tokenizer, and the tool whose numbers these are.

    jieba's version is part of it, because its dictionary is.
    """
    rouge_tokenizer(tokenizer)
    version = ""
    if tokenizer == "jieba":
        from importlib.metadata import version as installed

        version = installed("jieba")
    return f"rougeL:{tokenizer}{version}+rouge-score0.1.2"
