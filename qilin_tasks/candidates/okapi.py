"""Okapi BM25 over characters within one candidate list, as the BM25 row of Table 10 was made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

K1, B, EPSILON = 1.5, 0.75, 0.25
"""The defaults of rank_bm25's BM25Okapi; the paper doesn't state its own."""


def okapi_scores(query: str, documents: Sequence[str]) -> list[float]:
    """One score for each document, higher is better: every character is a term, blanks are none.

    The collection is the list itself. A term in more than half of the documents, whose idf would be negative, gets
    EPSILON times the mean idf, as in rank_bm25.
    """
    counts = [Counter("".join(document.split()).lower()) for document in documents]
    lengths = [sum(count.values()) for count in counts]
    mean_length = sum(lengths) / max(len(lengths), 1) or 1.0
    frequency = Counter(term for count in counts for term in count)
    idf = {term: math.log(len(documents) - df + 0.5) - math.log(df + 0.5) for term, df in frequency.items()}
    floor = EPSILON * sum(idf.values()) / max(len(idf), 1)
    terms = [(term, floor if idf[term] < 0 else idf[term]) for term in "".join(query.split()).lower() if term in idf]
    scores = []
    for count, length in zip(counts, lengths, strict=True):
        norm = K1 * (1 - B + B * length / mean_length)
        scores.append(sum(weight * count[term] * (K1 + 1) / (count[term] + norm) for term, weight in terms))
    return scores
