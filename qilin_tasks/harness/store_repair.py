"""A damaged response store -> a whole one with every row that holds; the broken file stays beside it."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qilin_tasks.files import replacing
from qilin_tasks.harness.response_store import (
    PAGE,
    SECONDS,
    TOKENS,
    BrokenStoreError,
    ResponseStore,
    holds,
    stored_count,
)

#: How keys begin before the digits of their hash.
_PREFIXES = ("", "raw:", TOKENS, f"{TOKENS}raw:", SECONDS)


def repair(path: Path, *, identity: Mapping[str, Any]) -> tuple[int, Path] | None:
    """Keep all rows that hold in a fresh store at `path`, the broken file beside it; None where nothing is broken.

    Returns how many were kept and where the broken file is now. Raises as ResponseStore does, but for damage.
    """
    try:
        stored_count(path, identity=identity)
        return None
    except BrokenStoreError:
        aside = path.with_name(f"{path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}")
    # The fresh store and the copy that is read both lie under unfinished names, which vanish on any error.
    with replacing(path, aside) as [fresh, copy]:
        fresh.unlink()
        with ResponseStore(fresh, identity=identity) as store:
            first = fresh.read_bytes()[:PAGE]
            found = _salvaged(path.read_bytes(), first, copy, store.identity_text)
            store.put_rows(found.items())
        copy.write_bytes(path.read_bytes())
        journal = path.with_name(f"{path.name}-journal")
        if journal.exists():
            journal.replace(aside.with_name(f"{aside.name}-journal"))
    return sum(not key.startswith((TOKENS, SECONDS)) for key in found), aside


def _salvaged(data: bytes, first: bytes, copy: Path, identity: str) -> dict[str, str]:
    """Every row that holds: once as the file is, once under the first page of a whole store of the same layout."""
    # Bytes 92 to 95 unlike 24 to 27: SQLite then counts the pages by the file's size.
    patched = first[:92] + b"\xff\xff\xff\xff" + first[96:] + data[PAGE:]
    found: dict[str, str] = {}
    for content in (data, patched + bytes(-len(patched) % PAGE)):
        copy.write_bytes(content)
        connection = sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        with contextlib.suppress(sqlite3.Error):
            connection.execute("PRAGMA writable_schema=ON")
        # A damaged page ends a scan: short ranges of keys from both ends reach everything around it.
        digits = ["", *("".join(three) for three in itertools.product("0123456789abcdef", repeat=3)), "g"]
        for prefix, order in itertools.product(_PREFIXES, ("ASC", "DESC")):
            for low, high in itertools.pairwise(digits):
                with contextlib.suppress(sqlite3.Error, OverflowError):
                    for row in connection.execute(
                        f"SELECT key, value, checksum FROM responses WHERE key >= ? AND key < ? ORDER BY key {order}",  # noqa: S608
                        (prefix + low, prefix + high),
                    ):
                        if holds(row, identity):
                            found[row[0]] = row[1]
        connection.close()
    return found
