"""Reads a GGUF file of version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

The package gguf reads one too, at 25 s for a vocabulary of 262,144, since it makes an object of each array entry;
only its dequantisation is used here.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.errors import ModelError

Array = NDArray[np.generic]
Value = int | float | bool | str | list[str] | Array

#: struct codes of the scalar types by their number in the file.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True)
class Gguf:
    """`fields` as in the file; `tensors` float32 in numpy's order of axes (rows first), dequantised."""

    fields: dict[str, Value]
    tensors: dict[str, NDArray[np.float32]]

    def number(self, name: str) -> int:
        """A whole number among the fields."""
        value = self.fields[name]
        if not isinstance(value, int):
            raise ModelError(f"field {name!r} of the GGUF file: {value!r} is no whole number")
        return value

    def numbers(self, name: str) -> list[float]:
        """A list of numbers among the fields."""
        value = self.fields[name]
        if not isinstance(value, np.ndarray):
            raise ModelError(f"field {name!r} of the GGUF file: not a list of numbers")
        numbers: list[float] = value.tolist()
        return numbers

    def strings(self, name: str) -> list[str]:
        """A list of strings among the fields."""
        value = self.fields[name]
        if not isinstance(value, list):
            raise ModelError(f"field {name!r} of the GGUF file: not a list of strings")
        return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from("<" + code, self.content, self.at)
        self.at += struct.calcsize("<" + code)
        return int(value)

    def text(self) -> str:
        length = self.number("Q")
        self.at += length
        return self.content[self.at - length : self.at].decode("utf-8")

    def value(self, kind: int) -> Value:
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            entry, count = self.number("I"), self.number("Q")
            if entry == STRING:
                return [self.text() for _ in range(count)]
            numbers = np.frombuffer(self.content, np.dtype(SCALARS[entry]).newbyteorder("<"), count, self.at)
            self.at += numbers.nbytes
            return numbers
        (value,) = struct.unpack_from("<" + SCALARS[kind], self.content, self.at)
        self.at += struct.calcsize("<" + SCALARS[kind])
        scalar: int | float | bool = value
        return scalar


def parse(content: bytes) -> Gguf:
    """The whole file. Raises ModelError where it is no GGUF of version 3."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    reader = _Reader(content)
    magic, version = content[:4], struct.unpack_from("<I", content, 4)[0]
    if magic != b"GGUF" or version != 3:
        raise ModelError(f"not a GGUF file of version 3: it begins with {magic!r}, version {version}")
    reader.at = 8
    tensor_count, field_count = reader.number("Q"), reader.number("Q")
    fields: dict[str, Value] = {}
    for _ in range(field_count):
        name = reader.text()
        fields[name] = reader.value(reader.number("I"))
    table = []
    for _ in range(tensor_count):
        name = reader.text()
        # The file counts axes from the fastest: columns first.
        shape = [reader.number("Q") for _ in range(reader.number("I"))][::-1]
        table.append((name, shape, GGMLQuantizationType(reader.number("I")), reader.number("Q")))
    alignment = Gguf({"general.alignment": DEFAULT_ALIGNMENT, **fields}, {}).number("general.alignment")
    start = -(-reader.at // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in table:
        weights, size = GGML_QUANT_SIZES[kind]
        raw = np.frombuffer(content, np.uint8, math.prod(shape) // weights * size, start + offset)
        if kind is GGMLQuantizationType.F32:
            tensors[name] = raw.view("<f4").reshape(shape)
        else:
            tensors[name] = dequantize(raw.reshape(*shape[:-1], -1), kind).reshape(shape)
    return Gguf(fields, tensors)
