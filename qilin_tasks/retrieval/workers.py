"""Work shared out among processes of this machine: the same results whatever their number."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, TypeVar

from typing_extensions import Self

from qilin_tasks.errors import DataError, SettingError

Result = TypeVar("Result")

PARTS_A_WORKER = 4
"""Parts of the work for each worker: few enough that starting one costs nothing, enough that none waits long."""
TICK_SECONDS = 1.0


def available_cores() -> int:
    """The cores that this process may use, from 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def neighbours(numbers: Sequence[int], *, longest: int) -> list[list[int]]:
    """Ascending numbers as runs without gaps, none longer than `longest`.

    >>> neighbours([0, 1, 2, 5, 6], longest=2)
    [[0, 1], [2], [5, 6]]
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number and len(runs[-1]) < longest:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


class Workers:
    """`number` processes, started when `run` first needs them and ended with the context.

    They are spawned, not forked: a fork would copy the locks of the threads that Arrow and torch run here. Raises
    SettingError for a number below 1.
    """

    def __init__(self, number: int) -> None:
        if number < 1:
            raise SettingError(f"workers {number}: choose a number of processes from 1")
        self.number = number
        self._pool: ProcessPoolExecutor | None = None

    def share(self, numbers: Sequence[int]) -> list[list[int]]:
        """Numbers of pieces of work as jobs: runs of neighbours, some for each process."""
        return neighbours(numbers, longest=max(1, -(-len(numbers) // (PARTS_A_WORKER * self.number))))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def run(
        self,
        function: Callable[..., Result],
        jobs: Iterable[tuple[Any, ...]],
        *,
        tick: Callable[[], None] = lambda: None,
    ) -> Iterator[Result]:
        """What `function` (of a module) returns for each job's arguments, in the order in which they are done.

        A job is drawn only when a process is free for it, so that it can build on the results so far; `tick` is
        called about once a second. Raises what `function` raises, and DataError where a process was killed.
        """
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.number, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
            )
        running: set[Future[Result]] = set()

        def finished(*, most: int) -> Iterator[Result]:
            while len(running) > most:
                done, _ = wait(running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
                running.difference_update(done)
                yield from (future.result() for future in done)
                tick()

        try:
            for job in jobs:
                running.add(self._pool.submit(function, *job))
                yield from finished(most=self.number - 1)
            yield from finished(most=0)
        except BrokenProcessPool as error:
            raise DataError(
                f"one of {self.number} worker processes was killed (out of memory?); what is finished is kept: run the "
                "same command again, with --workers 1 for the least memory"
            ) from error


def _begin() -> None:
    """In a new process: Ctrl-C is the parent's to handle, and a parent that was killed takes this process with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
