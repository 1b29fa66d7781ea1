"""Okapi BM25 over characters within one candidate list: *a* BM25 row, not shown to be Table 10's."""

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
    texts = ["".join(document.split()).lower() for document in documents]
    mean_length = sum(map(len, texts)) / max(len(texts), 1) or 1.0
    frequency: Counter[str] = Counter()
    for text in texts:
        frequency.update(set(text))
    # Only len(documents) values of idf exist, however many terms there are.
    idf = [math.log(len(texts) - df + 0.5) - math.log(df + 0.5) for df in range(len(texts) + 1)]
    total = sum(idf[df] * terms for df, terms in Counter(frequency.values()).items())
    floor = EPSILON * total / max(len(frequency), 1)
    weights = {
        term: occurrences * (floor if idf[frequency[term]] < 0 else idf[frequency[term]])
        for term, occurrences in Counter("".join(query.split()).lower()).items()
        if term in frequency
    }
    scores = []
    for text in texts:
        norm = K1 * (1 - B + B * len(text) / mean_length)
        counts = [(weight, text.count(term)) for term, weight in weights.items()]
        scores.append(sum(weight * count * (K1 + 1) / (count + norm) for weight, count in counts))
    return scores
