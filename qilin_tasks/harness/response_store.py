"""Responses on disk: one SQLite file for a model and a task, written as they come, refused to any other model.

Every row carries a checksum over the model's identity, the request and the response: what doesn't hold is never served.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.usage import Spent, Tally, Usage, total

FORMAT = 2
PAGE = 4096
#: Rows beside the responses: `tokens:<key>` of an answer, `seconds:<run>` of asking.
TOKENS, SECONDS = "tokens:", "seconds:"
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE responses (key TEXT PRIMARY KEY, value TEXT, checksum TEXT) WITHOUT ROWID",
)
#: What SQLite says of a file that it can't use for a reason other than damage.
_NO_DAMAGE = ("database is locked", "unable to open", "readonly", "disk is full", "disk I/O error")
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
    if isinstance(value, Sequence):
        # Covers of notes: pictures that are opened when they are asked for.
        return list(value)
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


class BrokenStoreError(DataError):
    """A store that is damaged; `repair` keeps what holds."""


class ResponseStore:
    """Responses by request key. What `put` was given is on disk when it returns (SQLite, synchronous=FULL).

    The whole file is checked when it is opened. Raises SettingError where it was written for another model or other
    settings, BrokenStoreError where it is damaged, DataError where it is of another format or can't be written.
    """

    def __init__(self, path: Path, *, identity: Mapping[str, Any]) -> None:
        self.path = path
        self._run = f"{SECONDS}{secrets.token_hex(8)}"
        self._asked_since: float | None = None
        #: What this process asked for.
        self.tally = Tally()
        self._device_peak: Callable[[], int | None] = lambda: None
        self.identity_text = json.dumps(identity, sort_keys=True, default=_plain)
        with _named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            new = not path.exists() or path.stat().st_size == 0
            # A killed process may leave a lock for the moment that it takes to die.
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            with _named(path):
                self._connection.execute("PRAGMA synchronous=FULL")
                if new:
                    self._create()
                self._check()
        except BaseException:
            self.close()
            raise

    def _create(self) -> None:
        """All or nothing, in a layout that `repair` can rely on: the tables' roots are pages 2 and 3."""
        for pragma in (f"page_size={PAGE}", "auto_vacuum=NONE", "encoding='UTF-8'"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("BEGIN EXCLUSIVE")
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for table in _TABLES:
                self._connection.execute(table)
            about = [("format", str(FORMAT)), ("identity", self.identity_text)]
            self._connection.executemany("INSERT INTO about VALUES (?, ?)", about)
        self._connection.execute("COMMIT")

    def _check(self) -> None:
        about = dict(self._connection.execute("SELECT name, value FROM about"))
        there = str(about.get("format"))
        if there != str(FORMAT) and there.isdecimal():
            raise DataError(
                f"{self.path}: response store of format {there}, this version reads {FORMAT}; use another --out, "
                "or delete the file"
            )
        [verdict, *_] = (row[0] for row in self._connection.execute("PRAGMA quick_check(1)"))
        if verdict != "ok" or there != str(FORMAT):
            raise _broken(self.path, str(verdict))
        rows = self._connection.execute("SELECT key, value, checksum FROM responses")
        bad = total = 0
        for row in rows:
            total += 1
            bad += not holds(row, self.identity_text)
        if about.get("identity") == self.identity_text:
            if bad:
                raise _broken(self.path, f"{bad} of {total} rows don't hold their checksum")
        elif bad < total:
            raise _broken(self.path, "it doesn't say whose answers it holds")
        else:
            raise SettingError(
                f"{self.path} holds the answers of another model or other settings:\n  there: {about.get('identity')}"
                f"\n  now:   {self.identity_text}\nGive this model another name, use another --out, or delete the file"
            )

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The stored responses among `keys`; a log-likelihood comes back as a tuple."""
        found: dict[str, Any] = {}
        for start in range(0, len(keys), _QUERY_SIZE):
            some = keys[start : start + _QUERY_SIZE]
            marks = ",".join("?" * len(some))
            with _named(self.path):
                rows = self._connection.execute(
                    f"SELECT key, value, checksum FROM responses WHERE key IN ({marks})",  # noqa: S608 (question marks)
                    some,
                ).fetchall()
            for row in rows:
                if not holds(row, self.identity_text):
                    raise _broken(self.path, f"the row {row[0]!r} doesn't hold its checksum")
                parsed = json.loads(row[1])
                found[row[0]] = tuple(parsed) if isinstance(parsed, list) else parsed
        return found

    def put(self, items: Iterable[tuple[str, Any]], *, usage: Mapping[str, Usage] | None = None) -> None:
        """Write responses with their tokens durably, all or none; inside of `asking` the time so far with them."""
        usage = usage or {}
        rows = [(key, json.dumps(value)) for key, value in items]
        keys = [key for key, _ in rows]
        rows += [(f"{TOKENS}{key}", tokens.dump()) for key, tokens in usage.items()]
        if self._asked_since is not None:
            now = time.monotonic()
            self.tally.seconds += now - self._asked_since
            self._asked_since = now
            span = {"seconds": round(self.tally.seconds, 3), "peak_bytes": self._device_peak()}
            rows.append((self._run, json.dumps(span)))
        self.put_rows(rows)
        self.tally.add(keys, usage)

    @contextlib.contextmanager
    def asking(self, device_peak: Callable[[], int | None]) -> Iterator[None]:
        """The time in here is that of the answers that are put; `device_peak` is looked at with each of them."""
        self._asked_since, self._device_peak = time.monotonic(), device_peak
        try:
            yield
        finally:
            self._asked_since = None

    def spent(self) -> Spent:
        """What all answers of this store took, those of earlier runs included."""
        with _named(self.path):
            rows = self._connection.execute(
                "SELECT key, value FROM responses WHERE key LIKE ? OR key LIKE ?", (f"{TOKENS}%", f"{SECONDS}%")
            ).fetchall()
        usages = (Usage(**json.loads(value)) for key, value in rows if key.startswith(TOKENS))
        return total(usages, (json.loads(value) for key, value in rows if key.startswith(SECONDS)))

    def put_rows(self, items: Iterable[tuple[str, str]]) -> None:
        """Write keys and values as they stand in the table, all or none."""
        rows = [(key, value, _checksum(self.identity_text, key, value)) for key, value in items]
        with _named(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT OR REPLACE INTO responses VALUES (?, ?, ?)", rows)
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def __len__(self) -> int:
        count: int = self._connection.execute("SELECT count(*) FROM responses WHERE key NOT LIKE '%:%'").fetchone()[0]
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


def _checksum(identity: str, key: str, value: str) -> str:
    return hashlib.blake2b(f"{identity}\0{key}\0{value}".encode(), digest_size=16).hexdigest()


def holds(row: Sequence[object], identity: str) -> bool:
    """Whether a row's checksum is that of its key and value under this identity."""
    key, value, checksum = row
    return isinstance(key, str) and isinstance(value, str) and checksum == _checksum(identity, key, value)


def _broken(path: Path, reason: str) -> BrokenStoreError:
    return BrokenStoreError(
        f"{path}: not a whole response store ({reason}); the same command with --repair keeps every answer that holds "
        "and sets the broken file aside"
    )


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """SQLite's errors and the system's as one line with the file's name."""
    try:
        yield
    except sqlite3.Error as error:
        if any(words in str(error) for words in _NO_DAMAGE):
            raise DataError(
                f"{path}: can't be read or written ({error}); free some space or choose a folder that is yours, and "
                "run the same command again: what is stored is kept"
            ) from error
        raise _broken(path, str(error)) from error
    except OSError as error:
        raise DataError(f"{path}: can't be read or written ({error.strerror or error})") from error


def stored_spent(path: Path, *, identity: Mapping[str, Any]) -> Spent:
    """What a store's answers took; nothing where there is none. Raises as ResponseStore does, but changes nothing."""
    if not path.is_file():
        return total((), ())
    with ResponseStore(path, identity=identity) as store:
        return store.spent()


def stored_count(path: Path, *, identity: Mapping[str, Any]) -> int:
    """How many responses a store holds; 0 where there is none. Raises as ResponseStore does, but changes nothing."""
    if not path.is_file():
        return 0
    with ResponseStore(path, identity=identity) as store:
        return len(store)
