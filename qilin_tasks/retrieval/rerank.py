"""A cross-encoder's order for the documents of a run: the paper's BERT_cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.hub_reach import reach_hub
from qilin_tasks.retrieval.encoders import devices, load_failed, model_identity
from qilin_tasks.retrieval.fusion import by_score
from qilin_tasks.text.tokens import is_blank

PIECE = 64
"""Queries scored and saved at a time."""


class PairScorer(Protocol):
    """Scores (query, text) pairs; more is more relevant."""

    signature: str

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """float of shape (pairs,)."""


class CrossEncoderScorer:
    """sentence-transformers' CrossEncoder with one output."""

    def __init__(self, model: str, *, batch_size: int, max_length: int) -> None:
        reach_hub(model)
        try:
            from sentence_transformers import CrossEncoder

            found = devices()
            self._model = CrossEncoder(model, device=found[0], max_length=max_length)
        except (ImportError, OSError, ValueError) as error:
            raise load_failed(model, error) from error
        _check_head(model)
        if self._model.num_labels != 1:
            raise DataError(f"model {model!r} has {self._model.num_labels} outputs; re-ranking needs one")
        # One process for each GPU (sentence-transformers 6).
        several = len(found) > 1 and hasattr(self._model, "start_multi_process_pool")
        self._several = {"pool": self._model.start_multi_process_pool(found)} if several else {}
        self._batch_size = batch_size
        self.signature = f"cross-encoder:{model_identity(model)}:{max_length}"

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self._model.predict(list(pairs), batch_size=self._batch_size, show_progress_bar=False, **self._several)


def _check_head(model: str) -> None:
    """DataError where the checkpoint lacks weights, as an encoder lacks those of a classifier's head.

    transformers fills them with random numbers: each run would give another order.
    """
    from transformers import AutoModelForSequenceClassification

    try:
        _, info = AutoModelForSequenceClassification.from_pretrained(model, output_loading_info=True)
    except (OSError, ValueError) as error:
        raise load_failed(model, error) from error
    check_weights(model, info)


def check_weights(model: str, info: Mapping[str, Any]) -> None:
    """DataError where transformers' loading info says that weights were missing."""
    missing = sorted(info["missing_keys"]) + sorted(str(key[0]) for key in info["mismatched_keys"])
    if missing:
        raise DataError(
            f"model {model!r} is no trained cross-encoder: weights are missing for {', '.join(missing[:4])}; give one "
            "that was trained to score pairs (BertForSequenceClassification with one output)"
        )


def rerank(
    queries: Sequence[str],
    rankings: Sequence[Sequence[tuple[Any, float]]],
    texts: Callable[[Iterable[Any]], Mapping[Any, str]],
    scorer: PairScorer,
    *,
    depth: int,
    k: int,
    folder: Path,
    progress: bool,
) -> list[list[tuple[Any, float]]]:
    """The first `depth` documents of each ranking by the scorer, the `k` best kept, equal scores by id as text.

    Pieces of PIECE queries are saved in `folder` (one folder for the same queries, rankings and scorer), so that a
    stopped run goes on. A ranking that is empty stays empty. Raises DataError for scores that are no numbers.
    """
    from tqdm import tqdm

    pieces = [
        [
            (query, [identifier for identifier, _ in ranking[:depth]])
            for query, ranking in zip(queries[start : start + PIECE], rankings[start : start + PIECE], strict=True)
        ]
        for start in range(0, len(queries), PIECE)
    ]
    held: Mapping[Any, str] | None = None
    reranked: list[list[tuple[Any, float]]] = []
    for number, piece in enumerate(tqdm(pieces, desc="re-ranking", unit=" pieces", disable=not progress)):
        path = folder / f"scores-{number:05d}.npy"
        if path.is_file():
            scores = np.load(path, allow_pickle=False)
        else:
            if held is None:
                # One pass over the corpus serves all pieces.
                held = texts({identifier for rest in pieces[number:] for _, ids in rest for identifier in ids})
            pairs = [(query, held[identifier]) for query, ids in piece for identifier in ids]
            scores = _scores(scorer, pairs, where=f"piece {number} of {PIECE} queries")
            write_whole(path, lambda file, scores=scores: np.save(file, scores))  # type: ignore[misc]
        values = iter(scores.tolist())
        for _, ids in piece:
            scored = {identifier: next(values) for identifier in ids}
            reranked.append(by_score({name: value for name, value in scored.items() if value > -math.inf}, k=k))
    return reranked


def _scores(scorer: PairScorer, pairs: Sequence[tuple[str, str]], *, where: str) -> NDArray[np.float64]:
    """One score a pair, minus infinity where either text is blank: that finds nothing."""
    asked = np.array([not (is_blank(query) or is_blank(text)) for query, text in pairs], dtype=np.bool_)
    scores = np.full(len(pairs), -np.inf)
    if asked.any():
        scores[asked] = scorer.score([pair for pair, wanted in zip(pairs, asked, strict=True) if wanted])
        if not np.isfinite(scores[asked]).all():
            raise DataError(f"{scorer.signature}: scores that are no numbers in {where}")
    return scores
