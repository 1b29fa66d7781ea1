"""The live view of a comparison: a table that redraws itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import Self

from qilin_tasks.compare.state import Pair
from qilin_tasks.compare.time_left import time_left
from qilin_tasks.results.cost import duration

SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Standing:
    """How a pair stands: `state` is waiting, loading, asking, writing, finished, reused, stopped or failed.

    `share` of the text of what was not there is answered; `spent` is budget.Spending of this run.
    """

    state: str
    done: int = 0
    total: int = 0
    reused: int = 0
    time: float = 0.0
    error: str = ""
    share: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("finished", "reused", "stopped", "failed")


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


class Lines:
    """A line at each change of state, and every half minute how far the asking is."""

    def __init__(self, *, jobs: int = 1, stream: Any = None) -> None:
        self.stream = stream or sys.stderr
        self.jobs = jobs
        self._seen: dict[tuple[str, str], str] = {}
        self._last = time.monotonic()

    def show(self, pairs: Sequence[Pair], standings: Sequence[Standing]) -> None:
        now = time.monotonic()
        due = now - self._last >= SECONDS_BETWEEN_LINES
        for pair, how in zip(pairs, standings, strict=True):
            key = (pair.model.name, pair.task.name)
            if self._seen.get(key) != how.state or (due and how.state == "asking"):
                self._seen[key] = how.state
                if how.state == "waiting" and not how.reused:
                    continue
                left = time_left(pairs, standings, jobs=self.jobs)
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

    def __init__(self, *, jobs: int = 1) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(console=Console(stderr=True), auto_refresh=False, transient=False)
        self.jobs = jobs

    def show(self, pairs: Sequence[Pair], standings: Sequence[Standing]) -> None:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        left = time_left(pairs, standings, jobs=self.jobs)
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


def view(*, jobs: int) -> View:
    """The live table where standard error is a terminal and rich is installed, else lines."""
    if sys.stderr.isatty():
        try:
            return Live(jobs=jobs)
        except ImportError:
            return Lines(jobs=jobs)
    return Lines(jobs=jobs)
