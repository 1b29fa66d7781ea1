"""The signature: one line that travels with a score and names all that went into it (after sacrebleu's)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

#: The part that stands for the answers of a system which was not asked through the harness.
GIVEN = "given"


def digest(value: Any, *, length: int = 12) -> str:
    """The first hexadecimal digits of the SHA-256 of a value's canonical JSON."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def digest_all(values: Iterable[Any], *, length: int = 12) -> str:
    """One digest over many values, without holding them all as one text."""
    total = hashlib.sha256()
    for value in values:
        total.update(digest(value, length=64).encode())
    return total.hexdigest()[:length]


def signature(family: str, parts: Mapping[str, Any]) -> str:
    """`dqa|ctx:bm25|k:5|…`: parts in the given order; a part that is None is left out."""
    return "|".join([family, *(f"{key}:{value}" for key, value in parts.items() if value is not None)])


def signature_parts(text: str | None) -> dict[str, str]:
    """`dqa|ctx:bm25|k:5` -> {"family": "dqa", "ctx": "bm25", "k": "5"}; {} without a signature."""
    if not text:
        return {}
    family, *rest = text.split("|")
    return {"family": family, **dict(part.partition(":")[::2] for part in rest)}
