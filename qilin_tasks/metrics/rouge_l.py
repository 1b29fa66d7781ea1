"""ROUGE-L (Lin 2004) at sentence level, with rouge-score 0.1.2's numbers for the same tokenizer.

Only the length of the longest common subsequence is needed: rapidfuzz gives it bit-parallel, hundreds of times faster
than rouge-score's table. rouge-score's own tokenizer keeps ASCII only, so that any Chinese text scores 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.text.tokens import TOKENIZERS, Tokenizer, tokenize_chars

# Tokens are recoded as characters, of which there are 1,114,112; far fewer are kept between pairs.
_MAX_CODES = 500_000
_SHOWN = 10


class RougeL(NamedTuple):
    """Precision, recall and F1 of the longest common subsequence, each in 0..1."""

    precision: float
    recall: float
    f1: float


class _Codes(dict[str, str]):
    """A distinct character for each distinct token, in order of appearance: equal strings of codes, no hash collisions."""

    def __missing__(self, token: str) -> str:
        self[token] = code = chr(len(self))
        return code

    def encode(self, tokens: Sequence[str]) -> str:
        return "".join(map(self.__getitem__, tokens))


def rouge_l(hypothesis: str | None, reference: str | None, *, tokenizer: Tokenizer = tokenize_chars) -> RougeL:
    """ROUGE-L of one pair: 0 where either side has no tokens, F1 with beta 1. Never raises on any text.

    Same values as `rouge_score.rouge_scorer.RougeScorer(["rougeL"], tokenizer=...)` for the same tokenizer.
    """
    return _score(tokenizer(hypothesis or ""), tokenizer(reference or ""), _Codes())


def rouge_l_batch(
    hypotheses: Sequence[str | None], references: Sequence[str | None], *, tokenizer: Tokenizer = tokenize_chars
) -> list[float]:
    """ROUGE-L F1 of each pair, as `rouge_l` gives it. Raises ValueError where the lengths differ."""
    codes = _Codes()
    scores = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        if len(codes) > _MAX_CODES:
            codes = _Codes()
        scores.append(_score(tokenizer(hypothesis or ""), tokenizer(reference or ""), codes).f1)
    return scores


def _score(hypothesis: list[str], reference: list[str], codes: _Codes) -> RougeL:
    if not hypothesis or not reference:
        return RougeL(0.0, 0.0, 0.0)
    if len(hypothesis) + len(reference) > _MAX_CODES:
        numbers: dict[str, int] = {}
        common = LCSseq.similarity(
            [numbers.setdefault(token, len(numbers)) for token in hypothesis],
            [numbers.setdefault(token, len(numbers)) for token in reference],
        )
    else:
        common = LCSseq.similarity(codes.encode(hypothesis), codes.encode(reference))
    precision = common / len(hypothesis)
    recall = common / len(reference)
    # rouge-score's order of operations, so that the numbers agree to the last bit.
    f1 = 2 * precision * recall / (precision + recall) if common else 0.0
    return RougeL(precision, recall, f1)


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
