"""BM25 over a collection that fits in memory, with the ranks that Anserini (Lucene) gives."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import SettingError
from qilin_tasks.retrieval.bm25_weights import encode_lengths, inverse_document_frequency, inverse_norms, term_weights
from qilin_tasks.text.analyzers import analyzer


class BM25:
    """Index of `documents` in compressed rows (about 8 bytes a posting): scores as Lucene's BM25Similarity.

    `language` names the analyzer (zh, en, th). Documents without terms count neither in N nor in the mean
    length, as in Lucene, and are never found. Equal scores go by position or, with `ids` (one a document), by
    id as text, as Anserini orders them. Raises SettingError for k1 < 0, b outside 0..1, ids of another number.

    >>> index = BM25(["水开下饺子", "猫要喝水", "海边风大"], language="zh")
    >>> [position for position, score in index.search("饺子怎么煮", k=2)]
    [0]
    """

    def __init__(
        self,
        documents: Sequence[str],
        *,
        language: str,
        k1: float = 0.9,
        b: float = 0.4,
        ids: Sequence[str] | None = None,
    ) -> None:
        check_parameters(k1=k1, b=b)
        if ids is not None and len(ids) != len(documents):
            raise SettingError(f"{len(ids)} ids for {len(documents)} documents: give one id for each")
        self._tie_order = None if ids is None else text_order(ids)
        self.analyze = analyzer(language)
        self._terms: dict[str, int] = {}
        term_ids, lengths = array("i"), array("i")
        for document in documents:
            terms = self.analyze(document)
            lengths.append(len(terms))
            term_ids.extend(self._terms.setdefault(term, len(self._terms)) for term in terms)
        self._lengths = np.frombuffer(lengths, dtype=np.int32) if lengths else np.zeros(0, dtype=np.int32)
        self.document_count = int(np.count_nonzero(self._lengths))
        self._k1, self._b = k1, b
        self._index(np.frombuffer(term_ids, dtype=np.int32) if term_ids else np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        return len(self._lengths)

    def _index(self, term_ids: NDArray[np.int32]) -> None:
        owners = np.repeat(np.arange(len(self), dtype=np.int64), self._lengths)
        keys = term_ids.astype(np.int64) * max(len(self), 1) + owners
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        self._frequencies = np.diff(first, append=len(keys)).astype(np.int32)
        terms, documents = np.divmod(keys[first], max(len(self), 1))
        self._documents = documents.astype(np.int32)
        self._starts = np.searchsorted(terms, np.arange(len(self._terms) + 1))

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        average = float(self._lengths.sum()) / max(self.document_count, 1)
        return inverse_norms(average, k1=self._k1, b=self._b)[encode_lengths(self._lengths)]

    def _postings(self, terms: Iterable[str]) -> list[tuple[NDArray[np.int32], NDArray[np.float32]]]:
        """Documents and weights of each distinct term that the collection holds; a repeated term weighs more."""
        found = []
        for term, count in sorted(Counter(terms).items()):
            if (number := self._terms.get(term)) is None:
                continue
            rows = slice(self._starts[number], self._starts[number + 1])
            documents = self._documents[rows]
            idf = inverse_document_frequency(len(documents), self.document_count)
            weight = np.float32(count) * idf
            found.append((documents, term_weights(self._frequencies[rows], self._norms[documents], weight)))
        return found

    def scores(self, query: str) -> NDArray[np.float64]:
        """The score of every document for `query`, float64 of shape (documents,), 0 where no term is shared."""
        totals = np.zeros(len(self), dtype=np.float64)
        for documents, weights in self._postings(self.analyze(query)):
            totals[documents] += weights
        # Lucene sums in double precision and hands out floats: without this, equal scores would not tie.
        return totals.astype(np.float32).astype(np.float64)

    def search(self, query: str, *, k: int) -> list[tuple[int, float]]:
        """At most `k` (position, score), best first, ties as the class says; unmatched documents are left out.

        A query that analyses to nothing finds nothing. Raises SettingError for k < 1.
        """
        if k < 1:
            raise SettingError(f"k {k}: choose a number of documents from 1")
        scores = self.scores(query)
        return [(int(position), float(scores[position])) for position in best(scores, k=k, tie_order=self._tie_order)]


def check_parameters(*, k1: float, b: float) -> None:
    """Raises SettingError for parameters outside BM25's ranges."""
    if not k1 >= 0 or not np.isfinite(k1):
        raise SettingError(f"k1 {k1}: choose a finite number from 0 (Anserini's default is 0.9)")
    if not 0 <= b <= 1:
        raise SettingError(f"b {b}: choose a number from 0 to 1 (Anserini's default is 0.4)")


def text_order(ids: Sequence[str]) -> NDArray[np.int64]:
    """The place of each id when all are sorted as text (code points), int64 of the same length."""
    places = np.empty(len(ids), dtype=np.int64)
    places[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return places


def best(scores: NDArray[Any], *, k: int, tie_order: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Positions of the at most `k` greatest scores above 0, greatest first, ties by `tie_order` or position."""
    candidates = np.flatnonzero(scores > 0)
    if len(candidates) > k:
        values = scores[candidates]
        candidates = candidates[values >= np.partition(values, len(values) - k)[len(values) - k]]
    ties = candidates if tie_order is None else tie_order[candidates]
    return np.asarray(candidates[np.lexsort((ties, -scores[candidates]))][:k], dtype=np.int64)
