"""BERTScore (Zhang et al. 2020), the numbers of bert-score 0.3.13 without idf and without rescaling.

Each token is matched with the other side's most similar token (cosine of the vectors of one layer; [CLS] and [SEP] can
be matched but don't count in the mean). Two faults of that tool are not followed: an empty text scores 0 instead of
raising, and a similarity below 0 stays below 0 whatever the padding of its batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

from qilin_tasks.errors import SettingError
from qilin_tasks.metrics.bertscore_encoder import check_encoder, model_name

logger = logging.getLogger(__name__)


# Beyond this share of unknown tokens, texts that differ look alike.
MOST_UNKNOWN = 0.1


class BertScores(NamedTuple):
    """One value a pair: precision, recall and F1 (at most 1), whether either text was cut at the limit, and the share
    of both texts' tokens that the encoder does not know.
    """

    precision: list[float]
    recall: list[float]
    f1: list[float]
    cut: list[bool]
    unknown: list[float]


class BertScorer:
    """BERTScore with one encoder. Making one is free; the weights load at the first `score`, once a process.

    `device` is auto (cuda where there is one), cpu, cuda, cuda:N or mps; `max_tokens` lowers the encoder's own limit.

    >>> scorer = BertScorer(model="bert-base-chinese", layer=8)  # doctest: +SKIP
    >>> scorer.score(["防晒霜"], ["防晒霜"]).f1  # doctest: +SKIP
    [1.0]
    """

    def __init__(
        self,
        *,
        model: str = "bert-base-chinese",
        layer: int = 8,
        device: str = "auto",
        batch_size: int = 64,
        max_tokens: int | None = None,
    ) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise SettingError(f"BERTScore batch size {batch_size!r}: choose a whole number from 1, such as 64")
        self.model = model
        self.layer = layer
        self.device = device
        self.batch_size = batch_size
        self.max_tokens = max_tokens

    def check(self) -> None:
        """Before generation: packages, settings, and every file of the model, downloaded now. Loads no weights.

        Raises DependencyError or SettingError, whose message says what to do.
        """
        check_encoder(model=self.model, layer=self.layer, device=self.device, max_tokens=self.max_tokens)

    @property
    def signature(self) -> str:
        """The recipe, as `bertscore_signature` gives it."""
        return bertscore_signature(model=self.model, layer=self.layer, max_tokens=self.max_tokens)

    def score(self, hypotheses: Sequence[str | None], references: Sequence[str | None]) -> BertScores:
        """BERTScore of each pair; 0 where either text is empty. ValueError where the lengths differ.

        Each distinct text is encoded once, in batches of similar length, so that neither the order of the pairs nor the
        batch size moves a value by more than float32 rounding (about 1e-6).
        """
        from qilin_tasks.metrics.bertscore_matching import coverage
        from qilin_tasks.metrics.bertscore_model import load_encoder

        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references: give one of each a pair")
        pairs = [
            (hypothesis or "", reference or "") for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        encoder = load_encoder(self.model, layer=self.layer, device=self.device)
        distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
        tokens = dict(zip(distinct, encoder.tokenize(distinct, max_tokens=self.max_tokens), strict=True))
        token_pairs = [(tokens[hypothesis], tokens[reference]) for hypothesis, reference in pairs]
        to_match = {(h.ids, r.ids) for h, r in token_pairs if h.ids and r.ids and h.ids != r.ids}
        covered = coverage(encoder, to_match, batch_size=self.batch_size)
        precision, recall, f1 = [], [], []
        for h, r in token_pairs:
            # Identical texts match every token with itself: exactly 1, where float32 gives 1 +- 1e-7.
            default = float(h.ids == r.ids and h.ids != ())
            precision.append(covered.get((h.ids, r.ids), default))
            recall.append(covered.get((r.ids, h.ids), default))
            f1.append(_f1(precision[-1], recall[-1]))
        cut = [h.cut or r.cut for h, r in token_pairs]
        if any(cut):
            logger.warning("BERTScore: %d of %d pairs hold a text cut at the encoder's limit", sum(cut), len(cut))
        unknown = [encoder.unknown_rate((*h.ids, *r.ids)) for h, r in token_pairs]
        if unknown and (mean := sum(unknown) / len(unknown)) > MOST_UNKNOWN:
            logger.warning(
                "BERTScore: model %r does not know %.0f %% of the tokens: different texts look alike to it (unknown is "
                "equal to unknown); choose bertscore_model for their language",
                self.model,
                100 * mean,
            )
        return BertScores(precision, recall, f1, cut, unknown)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def bertscore_signature(*, model: str, layer: int, max_tokens: int | None = None) -> str:
    """Such as `bertscore:bert-base-chinese_L8_tf5.19.0`; `_max256` follows where the limit was lowered.

    A folder appears as its name and the first digits of its weights' SHA-256.
    """
    limit = "" if max_tokens is None else f"_max{max_tokens}"
    return f"bertscore:{model_name(model)}_L{layer}{limit}_tf{version('transformers')}"
