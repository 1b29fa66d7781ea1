"""Responses on disk: one SQLite file for a model and a task, written as they come, refused to any other model."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from qilin_tasks.errors import DataError, SettingError

FORMAT = 1
# SQLite takes at most 999 variables in a statement in its oldest builds.
_QUERY_SIZE = 900


def _plain(value: Any) -> Any:
    """What JSON has no word for, as something that depends on the content alone: images and bytes by their hash."""
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": hashlib.sha256(bytes(value)).hexdigest()}
    if hasattr(value, "tobytes") and hasattr(value, "mode"):
        return {"image": [value.mode, list(value.size), hashlib.sha256(value.tobytes()).hexdigest()]}
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    raise TypeError(f"a request holds {type(value).__name__}, whose content can't be told apart from another's")


def request_key(kind: str, arguments: Sequence[Any]) -> str:
    """SHA-256 of a request: its type, its text, images and every generation setting (their order does not matter)."""
    text = json.dumps([kind, *arguments], default=_plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def request_keys(kind: str, requests: Iterable[Sequence[Any]]) -> list[str]:
    """Keys of a batch: repeats of the same request are told apart by their count, so that each keeps its own sample."""
    seen: Counter[str] = Counter()
    keys = []
    for arguments in requests:
        key = request_key(kind, arguments)
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return keys


class ResponseStore:
    """Responses by request key. What `put` was given is on disk when it returns (SQLite, synchronous=FULL).

    Raises SettingError where the file was written for another model or other settings, DataError where it is damaged
    or of another format.
    """

    def __init__(self, path: Path, *, identity: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        mine = json.dumps(identity, sort_keys=True, default=_plain)
        try:
            # A killed process may leave a lock for the moment that it takes to die.
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT)")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS responses (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO about VALUES (?, ?)", [("format", str(FORMAT)), ("identity", mine)]
            )
            about = dict(self._connection.execute("SELECT name, value FROM about"))
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"{path}: not a whole response store ({error}); delete the file, its answers are asked again"
            ) from error
        if about["format"] != str(FORMAT):
            self.close()
            raise DataError(
                f"{path}: response store of format {about['format']}, this version reads {FORMAT}; use another --out, "
                "or delete the file"
            )
        if about["identity"] != mine:
            self.close()
            raise SettingError(
                f"{path} holds the answers of another model or other settings:\n  there: {about['identity']}\n"
                f"  now:   {mine}\nGive this model another name, use another --out, or delete the file"
            )

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The stored responses among `keys`; a log-likelihood comes back as a tuple."""
        found: dict[str, Any] = {}
        for start in range(0, len(keys), _QUERY_SIZE):
            some = keys[start : start + _QUERY_SIZE]
            marks = ",".join("?" * len(some))
            rows = self._connection.execute(
                f"SELECT key, value FROM responses WHERE key IN ({marks})",  # noqa: S608 (marks are question marks)
                some,
            )
            for key, value in rows:
                parsed = json.loads(value)
                found[key] = tuple(parsed) if isinstance(parsed, list) else parsed
        return found

    def put(self, items: Iterable[tuple[str, Any]]) -> None:
        """Write responses durably, all or none."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT OR REPLACE INTO responses VALUES (?, ?)", [(key, json.dumps(value)) for key, value in items]
        )
        self._connection.execute("COMMIT")

    def __len__(self) -> int:
        count: int = self._connection.execute("SELECT count(*) FROM responses WHERE key NOT LIKE 'raw:%'").fetchone()[0]
        return count

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def stored_count(path: Path, *, identity: Mapping[str, Any]) -> int:
    """How many responses a store holds; 0 where there is none. Raises as ResponseStore does, but changes nothing."""
    if not path.is_file():
        return 0
    with ResponseStore(path, identity=identity) as store:
        return len(store)
