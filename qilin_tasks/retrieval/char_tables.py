"""Tables over all code points for analysis in arrays: the tokenizer's class and the folded form of a character."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.text.analyzers import fold_width, lower_case
from qilin_tasks.text.standard_tokenizer import class_letters

CODE_POINTS = 0x110000
UNSEEN = 255


class CharTables:
    """Class bytes (uint8) and folded code points (uint32) by code point, filled in as characters are first met."""

    def __init__(self) -> None:
        self.classes = np.full(CODE_POINTS, UNSEEN, dtype=np.uint8)
        self.folded = np.arange(CODE_POINTS, dtype=np.uint32)

    def classes_of(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """One class byte (`ord` of the class letter) for each code point."""
        found = self.classes[codes]
        if (unseen := found == UNSEEN).any():
            new = np.unique(codes[unseen])
            text = "".join(map(chr, new.tolist()))
            for code, character in zip(new.tolist(), text, strict=True):
                # Half-width voice marks join the kana before them: texts that hold them are analysed one by one.
                self.folded[code] = ord(lower_case(fold_width(character))[0])
            # Last, for other threads: a class that is known promises a folded form.
            self.classes[new] = np.frombuffer(class_letters(text).encode("ascii"), dtype=np.uint8)
            found = self.classes[codes]
        return found


@cache
def char_tables() -> CharTables:
    """The tables of this process."""
    return CharTables()


def class_set(letters: str) -> NDArray[np.bool_]:
    """Lookup of the class bytes that are among `letters`."""
    table = np.zeros(256, dtype=np.bool_)
    table[[ord(letter) for letter in letters]] = True
    return table


_FACTOR = 0x9E3779B97F4A7C15
_POWERS = 256


@cache
def _powers() -> NDArray[np.uint64]:
    values, power = [], 1
    for _ in range(_POWERS):
        values.append(power)
        power = power * _FACTOR % 2**64
    return np.array(values, dtype=np.uint64)


def hash_ranges(codes: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each range of code points (1 to 256 long), equal for equal ranges.

    A polynomial over mixed code points: two of a million different words collide with probability 3e-8.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.uint64)
    ends = np.cumsum(lengths)
    firsts = ends - lengths
    offsets = np.arange(ends[-1], dtype=np.int64) - np.repeat(firsts, lengths)
    values = codes[np.repeat(starts, lengths) + offsets].astype(np.uint64) + np.uint64(1)
    values *= np.uint64(0xD6E8FEB86659FD93)
    values ^= values >> np.uint64(32)
    values *= np.uint64(0xA0761D6478BD642F)
    values ^= values >> np.uint64(29)
    values *= _powers()[offsets]
    hashes = np.add.reduceat(values, firsts)
    return np.asarray(hashes, dtype=np.uint64)


def hash_text(text: str) -> int:
    """The hash of one text, as `hash_ranges` gives it."""
    codes = np.array([ord(character) for character in text], dtype=np.uint32)
    return int(hash_ranges(codes, np.zeros(1, dtype=np.int64), np.array([len(codes)], dtype=np.int64))[0])
