"""What is kept of a corpus in memory from one batch of queries to the next: its index, its vectors, the encoder."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.retrieval.corpus import ListCorpus
from qilin_tasks.text.tokens import is_blank

if TYPE_CHECKING:
    from qilin_tasks.retrieval.encoders import Encoder

Scores = NDArray[np.float64]


@lru_cache(maxsize=2)
def held_encoder(model: str, **settings: Any) -> Encoder:
    """As `load_encoder`, loaded once a process for the same settings."""
    from qilin_tasks.retrieval.encoders import load_encoder

    return load_encoder(model, **settings)


@lru_cache(maxsize=4)
def held_index(corpus: ListCorpus, language: str, k1: float, b: float) -> BM25:
    """The index of a corpus."""
    return BM25(corpus.texts, language=language, k1=k1, b=b)


@lru_cache(maxsize=2)
def held_vectors(corpus: ListCorpus, encoder: Encoder) -> NDArray[np.float32]:
    """The vectors of a corpus; NaN for a text that is blank."""
    vectors = encoder.encode(corpus.texts)
    vectors[[is_blank(text) for text in corpus.texts]] = np.nan
    return vectors


def best_positions(scores: Scores, *, k: int) -> list[tuple[int, float]]:
    """The `k` best (position, score) that were found, equal scores by position."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [(int(place), float(scores[place])) for place in order if scores[place] > -np.inf]
