"""A cross-encoder's order for the documents of a run: the paper's BERT_cross."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.retrieval.encoders import _failed, devices, model_identity
from qilin_tasks.retrieval.fusion import by_score

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
        try:
            from sentence_transformers import CrossEncoder

            found = devices()
            self._model = CrossEncoder(model, device=found[0], max_length=max_length)
        except (ImportError, OSError, ValueError) as error:
            raise _failed(model, error) from error
        if self._model.num_labels != 1:
            raise DataError(f"model {model!r} has {self._model.num_labels} outputs; re-ranking needs one")
        # One process for each GPU (sentence-transformers 6).
        several = len(found) > 1 and hasattr(self._model, "start_multi_process_pool")
        self._several = {"pool": self._model.start_multi_process_pool(found)} if several else {}
        self._batch_size = batch_size
        self.signature = f"cross-encoder:{model_identity(model)}:{max_length}"

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self._model.predict(list(pairs), batch_size=self._batch_size, show_progress_bar=False, **self._several)


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
            scores = np.asarray(scorer.score(pairs) if pairs else [], dtype=np.float64)
            if not np.isfinite(scores).all():
                raise DataError(f"{scorer.signature}: scores that are no numbers in piece {number} of {PIECE} queries")
            write_whole(path, lambda file, scores=scores: np.save(file, scores))  # type: ignore[misc]
        values = iter(scores.tolist())
        reranked += [by_score({identifier: next(values) for identifier in ids}, k=k) for _, ids in piece]
    return reranked
