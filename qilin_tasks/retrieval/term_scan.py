"""Which of the queries' terms each of many texts holds, and how long each text is in terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.retrieval.char_tables import CODE_POINTS, char_tables, hash_ranges, hash_text
from qilin_tasks.retrieval.texts import ListTexts, Texts
from qilin_tasks.retrieval.word_arrays import find_words
from qilin_tasks.text.analyzers import Analyzer, analyze_zh, analyzer, fold_width
from qilin_tasks.text.stop_words import CJK_STOP_WORDS

LARGEST_TABLE = 2**26
"""Entries of the largest table from pairs of characters to terms (256 MB); above it, pairs are searched."""


class Occurrences(NamedTuple):
    """(text, term) of each occurrence of a wanted term, in no order, and the length of every text in terms."""

    texts: NDArray[np.int64]
    terms: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Scanner(Protocol):
    """Finds the terms it was made for; terms are known by their position."""

    def scan(self, texts: Texts) -> Occurrences:
        """All occurrences in `texts`."""


def scanner(language: str, terms: Sequence[str]) -> Scanner:
    """The fastest scanner of a language: whole arrays for `zh`, text by text for the others."""
    if language == "zh":
        return CjkScanner(terms)
    return PlainScanner(terms, analyze=analyzer(language))


class PlainScanner:
    """Runs the analyzer over each text and keeps what is wanted."""

    def __init__(self, terms: Sequence[str], *, analyze: Analyzer) -> None:
        self._analyze = analyze
        self._number = {term: number for number, term in enumerate(terms)}

    def scan(self, texts: Texts) -> Occurrences:
        owners: list[int] = []
        found: list[int] = []
        lengths = np.zeros(len(texts), dtype=np.int64)
        for position, text in enumerate(texts.tolist()):
            terms = self._analyze(text)
            lengths[position] = len(terms)
            hits = [number for term in terms if (number := self._number.get(term)) is not None]
            found += hits
            owners += [position] * len(hits)
        return Occurrences(np.array(owners, dtype=np.int64), np.array(found, dtype=np.int64), lengths)


class CjkScanner:
    """Lucene's CJKAnalyzer over arrays of code points: the same terms as `analyze_zh`, about fifty times as fast."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._plain = PlainScanner(terms, analyze=analyze_zh)
        self._tables = char_tables()
        counts = Counter(character for term in terms if len(term) == 2 for character in term)
        # Frequent characters get small numbers: what is looked up often lies together in the processor's cache.
        characters = [character for character, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
        # Characters that no two-character term holds share the number 0.
        self._width = len(characters) + 1
        self._number = np.zeros(CODE_POINTS, dtype=np.uint16 if self._width < 2**16 else np.uint32)
        self._number[[ord(character) for character in characters]] = np.arange(1, self._width)
        kana = np.arange(0xFF65, 0xFF9E)
        self._number[kana] = self._number[[ord(fold_width(chr(code))) for code in kana.tolist()]]
        pairs = {
            int(self._number[ord(term[0])]) * self._width + int(self._number[ord(term[1])]): number
            for number, term in enumerate(terms)
            if len(term) == 2
        }
        self._pair_keys = np.array(sorted(pairs), dtype=np.uint64)
        self._pair_terms = np.array([pairs[key] for key in sorted(pairs)], dtype=np.int64)
        self._is_pair = np.zeros(self._width * self._width, dtype=np.bool_)
        self._is_pair[self._pair_keys] = True
        self._pair_table: NDArray[np.int32] | None = None
        if len(self._is_pair) <= LARGEST_TABLE:
            self._pair_table = np.zeros(len(self._is_pair), dtype=np.int32)
            self._pair_table[self._pair_keys] = self._pair_terms
        self._single = np.full(CODE_POINTS, -1, dtype=np.int32)
        for number, term in enumerate(terms):
            if len(term) == 1:
                self._single[ord(term)] = number
        hashes = {hash_text(term): number for number, term in enumerate(terms)}
        hashes |= {hash_text(word): -1 for word in CJK_STOP_WORDS}
        self._hashes = np.array(sorted(hashes), dtype=np.uint64)
        self._hash_terms = np.array([hashes[key] for key in sorted(hashes)], dtype=np.int64)

    def scan(self, texts: Texts) -> Occurrences:
        codes, starts = texts.code_points()
        classes = self._tables.classes_of(codes)
        words = find_words(classes)
        is_cjk = classes == ord("H")
        for start, length in zip(
            words.starts[words.is_cjk].tolist(), words.lengths[words.is_cjk].tolist(), strict=True
        ):
            is_cjk[start : start + length] = True
        pair_places, pair_terms, links = self._pairs(codes, is_cjk)
        alone = is_cjk.copy()
        alone &= ~links
        alone[1:] &= ~links[:-1]
        single_places = np.flatnonzero(alone)
        single_terms = self._single[self._tables.folded[codes[single_places]]].astype(np.int64)
        whole = ~words.is_cjk
        word_places, word_terms, stopped = self._words(codes, words.starts[whole], words.lengths[whole])
        if not len(codes):
            return Occurrences(starts[:0], starts[:0], np.zeros(len(texts), dtype=np.int64))
        links_before = np.add.reduceat(links, starts[:-1], dtype=np.int64)
        lengths = links_before + _counts(single_places, starts) + _counts(words.starts[whole], starts)
        lengths -= _counts(stopped, starts)
        owners, terms = [], []
        for places, numbers in (
            (pair_places, pair_terms),
            (single_places[single_terms >= 0], single_terms[single_terms >= 0]),
            (word_places, word_terms),
        ):
            # Places ascend, so a count for each text says to whom they belong.
            owners.append(np.repeat(np.arange(len(texts)), _counts(places, starts)))
            terms.append(numbers)
        odd = np.unique(np.searchsorted(starts, words.odd, side="right") - 1)
        return self._with_odd_texts(texts, odd, np.concatenate(owners), np.concatenate(terms), lengths)

    def _pairs(
        self, codes: NDArray[np.uint32], is_cjk: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Places and terms of wanted bigrams, and for every place whether a bigram starts there."""
        links = np.empty(len(codes), dtype=np.bool_)
        np.logical_and(is_cjk[:-1], is_cjk[1:], out=links[:-1])
        links[-1:] = False
        numbers = self._number[codes]
        keys = np.multiply(numbers[:-1], self._width, dtype=np.uint32 if self._width < 2**16 else np.uint64)
        keys += numbers[1:]
        places = np.flatnonzero(self._is_pair[keys] & links[:-1])
        if self._pair_table is not None:
            return places, self._pair_table[keys[places]].astype(np.int64), links
        return places, self._pair_terms[np.searchsorted(self._pair_keys, keys[places])], links

    def _words(
        self, codes: NDArray[np.uint32], starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Places and terms of the wanted words, and the places of stop words."""
        short = lengths <= 127
        starts, lengths = starts[short], lengths[short]
        hashes = hash_ranges(self._tables.folded[codes], starts, lengths)
        slot = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        known = self._hashes[slot] == hashes
        terms = self._hash_terms[slot[known]]
        places = starts[known]
        return places[terms >= 0], terms[terms >= 0], places[terms < 0]

    def _with_odd_texts(
        self,
        texts: Texts,
        odd: NDArray[np.int64],
        owners: NDArray[np.int64],
        terms: NDArray[np.int64],
        lengths: NDArray[Any],
    ) -> Occurrences:
        """Puts the plain analyzer's result in place of what the arrays gave for the texts `odd`."""
        if not len(odd):
            return Occurrences(owners, terms, lengths)
        single = self._plain.scan(ListTexts(texts.tolist(odd)))
        lengths[odd] = single.lengths
        is_odd = np.zeros(len(texts), dtype=np.bool_)
        is_odd[odd] = True
        regular = ~is_odd[owners]
        return Occurrences(
            np.concatenate([owners[regular], odd[single.texts]]),
            np.concatenate([terms[regular], single.terms]),
            lengths,
        )


def _counts(places: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the ascending `places` lie in each text."""
    return np.diff(np.searchsorted(places, starts))
