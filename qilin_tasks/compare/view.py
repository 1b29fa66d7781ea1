"""The live view of a comparison: a table that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import Self

from qilin_tasks.compare.state import Pair

SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Standing:
    """How a pair stands: `state` is waiting, loading, asking, writing, finished, reused or failed."""

    state: str
    done: int = 0
    total: int = 0
    reused: int = 0
    time: float = 0.0
    error: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("finished", "reused", "failed")


def standing(pair: Pair, out: Path, *, since: float) -> Standing:
    """Read a pair's status file; one that is older than `since` is an earlier run's and counts as waiting."""
    if pair.result is not None:
        return Standing("reused", pair.task.requests, pair.task.requests, pair.task.requests)
    waiting = Standing("waiting", pair.stored, pair.task.requests, pair.stored)
    try:
        status = json.loads((out / pair.model.name / "status" / f"{pair.task.name}.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return waiting
    if status.get("time", 0.0) < since:
        return waiting
    status = {key: value for key, value in status.items() if key in Standing.__dataclass_fields__}
    over = status.get("state") in ("writing", "finished")
    done = pair.task.requests if over else pair.stored
    return Standing(**{"done": done, "total": pair.task.requests, "reused": pair.stored, **status})


class View(Protocol):
    """What shows the standings."""

    def show(self, pairs: Sequence[Pair], standings: Sequence[Standing]) -> None:
        """Show how all pairs stand."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def time_left(standings: Sequence[Standing], *, started: float, now: float) -> float | None:
    """Seconds left at the rate so far of the requests asked in this run; None before a tenth of them is answered.

    `started`: when the first request went out; loading a model says nothing of its speed.
    """
    asked = sum(s.done - s.reused for s in standings if s.state not in ("reused", "waiting", "failed"))
    left = sum(s.total - s.done for s in standings if not s.over)
    return left * (now - started) / asked if asked > 0 and asked >= 0.1 * (asked + left) else None


def answering(standings: Sequence[Standing]) -> bool:
    """Whether any pair of this run is past the loading of its model."""
    return any(s.state in ("asking", "writing", "finished") for s in standings)


def duration(seconds: float) -> str:
    """`1:02:03`, `02:03`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes:02}:{whole % 60:02}"


class Lines:
    """A line at each change of state, and every half minute how far the asking is."""

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream or sys.stderr
        self._seen: dict[tuple[str, str], str] = {}
        self._last = self._started = time.monotonic()

    def show(self, pairs: Sequence[Pair], standings: Sequence[Standing]) -> None:
        now = time.monotonic()
        if not answering(standings):
            self._started = now
        due = now - self._last >= SECONDS_BETWEEN_LINES
        for pair, how in zip(pairs, standings, strict=True):
            key = (pair.model.name, pair.task.name)
            if self._seen.get(key) != how.state or (due and how.state == "asking"):
                self._seen[key] = how.state
                if how.state == "waiting" and not how.reused:
                    continue
                left = time_left(standings, started=self._started, now=now)
                count = f" {how.done}/{how.total}" if how.state == "asking" else ""
                kept = f", {how.reused} already there" if how.reused and how.state != "reused" else ""
                eta = f", about {duration(left)} left in all" if left and how.state == "asking" else ""
                print(
                    f"{key[0]} {key[1]}: {how.state}{count}{kept}{eta} {how.error}".rstrip(),
                    file=self.stream,
                    flush=True,
                )
        if due:
            self._last = now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Live:
    """rich's live table: one row a pair, a bar, what was reused, the time left in the last line."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(console=Console(stderr=True), auto_refresh=False, transient=False)
        self._started = time.monotonic()

    def show(self, pairs: Sequence[Pair], standings: Sequence[Standing]) -> None:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if not answering(standings):
            self._started = time.monotonic()
        left = time_left(standings, started=self._started, now=time.monotonic())
        over = sum(how.over for how in standings)
        caption = f"{over} of {len(pairs)} done" + (f", about {duration(left)} left" if left else "")
        table = Table(caption=caption, caption_justify="left")
        for column in ("model", "task", "state", "progress", "answers", "reused"):
            table.add_column(column, justify="right" if column in ("answers", "reused") else "left")
        styles = {"failed": "red", "finished": "green", "reused": "green", "asking": "cyan"}
        for pair, how in zip(pairs, standings, strict=True):
            done = how.total if how.state in ("finished", "writing") else how.done
            table.add_row(
                Text(pair.model.name),
                Text(pair.task.name),
                Text(how.state, style=styles.get(how.state, "")),
                ProgressBar(total=max(1, how.total), completed=done, width=20),
                f"{done}/{how.total}",
                str(how.reused or ""),
            )
        self._live.update(table, refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def view() -> View:
    """The live table where standard error is a terminal and rich is installed, else lines."""
    if sys.stderr.isatty():
        try:
            return Live()
        except ImportError:
            return Lines()
    return Lines()
