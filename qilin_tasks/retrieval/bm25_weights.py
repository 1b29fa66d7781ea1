"""Lucene's BM25Similarity, number for number: idf, lengths kept in one byte, float32 term weights."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@cache
def length_table() -> NDArray[np.int64]:
    """The 256 document lengths that Lucene's SmallFloat.byte4ToInt tells apart: exact to 39, then four bits."""
    free = 255 - _float_bits(2**31 - 1)
    return np.array([code if code < free else free + _from_bits(code - free) for code in range(256)])


def _float_bits(value: int) -> int:
    """SmallFloat.longToInt4: 3 bits of mantissa behind the leading one, shifted; order is kept."""
    bits = value.bit_length()
    if bits < 4:
        return value
    shift = bits - 4
    return ((value >> shift) & 0x07) | ((shift + 1) << 3)


def _from_bits(code: int) -> int:
    mantissa, shift = code & 0x07, (code >> 3) - 1
    return mantissa if shift == -1 else (mantissa | 0x08) << shift


def encode_lengths(lengths: NDArray[Any]) -> NDArray[np.uint8]:
    """One byte for each document length (terms after stop words), rounded down as Lucene's norms are."""
    return (np.searchsorted(length_table(), lengths, side="right") - 1).astype(np.uint8)


def inverse_norms(average_length: float, *, k1: float, b: float) -> Floats:
    """1 / (k1 (1 - b + b dl / avgdl)) for each of the 256 length codes, in float32 steps."""
    k1_, b_, average = np.float32(k1), np.float32(b), np.float32(average_length)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = b_ * length_table().astype(np.float32) / average
        return np.asarray(np.float32(1) / (k1_ * ((np.float32(1) - b_) + ratio)), dtype=np.float32)


def inverse_document_frequency(document_frequency: int, document_count: int) -> np.float32:
    """log(1 + (N - n + 0.5) / (n + 0.5)), never negative."""
    value = math.log(1 + (document_count - document_frequency + 0.5) / (document_frequency + 0.5))
    weight: np.float32 = np.float32(value)
    return weight


def term_weights(frequencies: NDArray[Any], norms: Floats, weight: np.float32) -> Floats:
    """idf tf / (tf + k1 (1 - b + b dl / avgdl)) as Lucene writes it: weight - weight / (1 + tf / norm)."""
    one = np.float32(1)
    return np.asarray(weight - weight / (one + frequencies.astype(np.float32) * norms), dtype=np.float32)
