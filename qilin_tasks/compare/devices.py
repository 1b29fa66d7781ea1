"""GPUs handed out to models that run side by side on this machine, without Ray."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager

from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.errors import SettingError
from qilin_tasks.harness.backends import BACKENDS

VISIBLE = "CUDA_VISIBLE_DEVICES"


def gpus_of(spec: ModelSpec) -> float:
    """The GPUs a job asks for: as said, else one for each parallel part of local weights, none for servers."""
    if spec.gpus is not None:
        return spec.gpus
    parts = float(spec.args.get("tensor_parallel_size", 1)) * float(spec.args.get("data_parallel_size", 1))
    return parts if BACKENDS[spec.backend].local else 0.0


def machine_gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES lists, else the numbers of all GPUs that nvidia-smi knows; [] without either."""
    if VISIBLE in os.environ:
        return [name.strip() for name in os.environ[VISIBLE].split(",") if name.strip() not in ("", "-1", "NoDevFiles")]
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [line.strip() for line in ran.stdout.splitlines() if line.strip()] if ran.returncode == 0 else []


def chosen_gpus(text: str) -> list[str]:
    """`all`, or some by name: `0,2,3`. Raises SettingError where there is none, or one is named that is not there."""
    there = machine_gpus()
    if not there:
        raise SettingError(f"--gpus {text}: no GPU here (nvidia-smi lists none, {VISIBLE} is empty or not set)")
    if text == "all":
        return there
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in there:
            raise SettingError(f"--gpus {text}: GPU {name!r}: choose from {', '.join(there)}")
    if not names or len(set(names)) < len(names):
        raise SettingError(f"--gpus {text}: each GPU once, for example {','.join(there)}")
    return names


def whole_gpus(spec: ModelSpec) -> int:
    """How many GPUs a model holds here: a part of one is one, and a model that names its own devices holds none."""
    if VISIBLE in spec.environment:
        return 0
    wanted = gpus_of(spec)
    return int(wanted) + (wanted > int(wanted))


class Pool:
    """GPUs that are free; models get theirs in the order in which they ask, so that a large one is not passed by."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._free = list(names)
        self._queue: list[object] = []
        self._closed = False
        self._changed = threading.Condition()

    def close(self) -> None:
        """Lend nothing more: who waits gets CancelledError."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def check(self, specs: Sequence[ModelSpec]) -> None:
        """Raises SettingError for a model that would wait for ever."""
        for spec in specs:
            if whole_gpus(spec) > len(self.names):
                raise SettingError(
                    f"model {spec.name!r} asks for {whole_gpus(spec)} GPUs (`gpus:`, tensor_parallel_size), but --gpus "
                    f"has {len(self.names)}: {', '.join(self.names)}"
                )

    @contextmanager
    def lend(self, count: int) -> Iterator[list[str]]:
        """`count` GPUs for the length of the context; waits until they are free."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            self._changed.wait_for(lambda: self._closed or (self._queue[0] is ticket and len(self._free) >= count))
            self._queue.remove(ticket)
            if self._closed:
                raise CancelledError
            lent, self._free = self._free[:count], self._free[count:]
            self._changed.notify_all()
        try:
            yield lent
        finally:
            with self._changed:
                self._free = sorted([*self._free, *lent], key=self.names.index)
                self._changed.notify_all()
