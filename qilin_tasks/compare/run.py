"""Plan a comparison, run what is missing here or on a Ray cluster, and tell what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.compare.budget import STOP_FILE, Limits, Spending, prices_of
from qilin_tasks.compare.devices import VISIBLE, Pool, whole_gpus
from qilin_tasks.compare.processes import child_environment, last_lines, run_job, stop_all
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import HEAD, Options, Pair, Planned, job_of
from qilin_tasks.compare.view import Standing, View, standing, view
from qilin_tasks.errors import DataError
from qilin_tasks.files import locked, write_whole

POLL_SECONDS = 0.3
#: The environment variables that say which data the tasks read.
DATA_VARIABLES = ("QILIN_DATA", "REQA_DATA", "HF_ENDPOINT")


@contextmanager
def only_one(out: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Hold the folder's lock: two comparisons in one folder would ask everything twice.

    With `names` (--only) the locks of these models, so that calls for different ones run beside each other.
    """
    paths = [out / f".only-{name}" for name in names] or [out / HEAD]
    with ExitStack() as stack:
        for path in sorted(paths):
            held = "another compare command is running on this folder; wait for it or stop it"
            stack.enter_context(locked(path, held=held))
        yield


def data_state(options: Options) -> dict[str, Any]:
    """What a plan depends on besides its settings: where the data lie, and names, sizes and times of local files."""
    named = {name: os.environ.get(name) for name in DATA_VARIABLES}
    values = [*named.values(), *options.include_path, *_texts(options.metadata)]
    files: dict[str, list[int]] = {}
    for root in (Path(value).expanduser() for value in values if value and len(value) < 1000 and "\n" not in value):
        for path in [root] if root.is_file() else sorted(root.rglob("*")) if root.is_dir() else ():
            if path.is_file():
                about = path.stat()
                files[str(path)] = [about.st_size, about.st_mtime_ns]
    return {"named": named, "files": files}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def make_plan(options: Options, *, folder: Path) -> list[Planned]:
    """The leaf tasks, their sizes and their signatures; kept in `folder`, as the data are read for it.

    Data that changed make another plan, before anything is asked; the processes of the models check it once more.
    """
    job = {
        "tasks": list(options.tasks),
        "metadata": dict(options.metadata),
        "limit": options.limit,
        "num_fewshot": options.num_fewshot,
        "gen_kwargs": dict(options.gen_kwargs),
        "include_path": list(options.include_path),
    }
    about = {**job, "version": __version__, "data": data_state(options)}
    key = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:16]
    path = folder / f"{key}.json"
    if not path.exists():
        write_whole(folder / f"{key}.job.json", json.dumps(job))
        command = [sys.executable, "-m", "qilin_tasks.compare.planning", str(folder / f"{key}.job.json"), str(path)]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        write_whole(folder / f"{key}.log", (ran.stdout + ran.stderr).decode("utf-8", "replace"))
        if ran.returncode != 0 or not path.exists():
            raise DataError(
                f"the tasks {', '.join(options.tasks)} can't be loaded ({folder / f'{key}.log'}):\n"
                + last_lines(folder / f"{key}.log", 5)
            )
    answer = json.loads(path.read_text(encoding="utf-8"))
    if "error" in answer:
        path.unlink()
        raise DataError(answer["error"])
    return [_planned(task) for task in answer["tasks"]]


def _planned(task: dict[str, Any]) -> Planned:
    known = {key: value for key, value in task.items() if key in Planned.__dataclass_fields__}
    settings = task.get("settings")
    return Planned(
        **{**known, "metrics": tuple(task["metrics"]), "settings": None if settings is None else tuple(settings)}
    )


def run_pairs(
    pairs: Sequence[Pair], options: Options, *, jobs: int, ray_address: str | None, pool: Pool | None = None
) -> list[Standing]:
    """Run every pair that has no result yet and return how all stand in the end.

    `pool` hands its GPUs out to local models: as many run at a time as get theirs, beside `jobs` of the others.
    """
    run = _Run(pairs, options, pool)
    todo: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.result is None:
            todo.setdefault(pair.model.name, []).append(pair)
    width = len(todo) if ray_address is not None or pool is not None else jobs
    try:
        if todo and ray_address is not None:
            from qilin_tasks.compare.ray_cluster import run_on_ray

            with view(jobs=width) as shown:
                waiting = [pair for group in todo.values() for pair in group]
                run_on_ray(waiting, options, address=ray_address, limits=run.limits, poll=lambda: run.look(shown))
                run.look(shown)
        elif todo:
            run.here(list(todo.values()), jobs=jobs, width=width)
    finally:
        run.stop_file.unlink(missing_ok=True)
    return [ended(standing(pair, options.out, since=run.since), pair, options) for pair in pairs]


class _Run:
    """One call of `compare`: what it spent so far, and its models' processes."""

    def __init__(self, pairs: Sequence[Pair], options: Options, pool: Pool | None) -> None:
        self.pairs, self.options, self.pool = pairs, options, pool
        self.since = time.time()
        # Several calls may share the folder (--only).
        self.stop_file = options.out.resolve() / f"{STOP_FILE}-{uuid.uuid4().hex}"

    def standings(self) -> list[Standing]:
        """How all pairs stand now."""
        return [standing(pair, self.options.out, since=self.since) for pair in self.pairs]

    def limits(self, spec: ModelSpec) -> Limits | None:
        """What is left of the budget for a process that starts now; None without a budget."""
        if not self.options.budget:
            return None
        spent = [
            (Spending(**how.spent), prices_of(pair.model))  # type: ignore[arg-type]
            for pair, how in zip(self.pairs, self.standings(), strict=True)
        ]
        return Limits.left(self.options.budget, spent, started=self.since, stop=self.stop_file, prices=prices_of(spec))

    def look(self, shown: View) -> None:
        """Show how all stand; stop all where they are at the limit together."""
        shown.show(self.pairs, self.standings())
        limits = self.limits(self.pairs[0].model)
        if limits is not None and not self.stop_file.exists() and limits.used_up:
            write_whole(self.stop_file, "")

    def here(self, groups: Sequence[Sequence[Pair]], *, jobs: int, width: int) -> None:
        """Run the models on this machine and come back when all are through."""
        others = threading.BoundedSemaphore(jobs)
        with view(jobs=width) as shown, ThreadPoolExecutor(max_workers=width) as executor:
            running: list[Future[int]] = [executor.submit(self._model, group, others) for group in groups]
            try:
                while True:
                    self.look(shown)
                    if all(future.done() for future in running):
                        break
                    time.sleep(POLL_SECONDS)
                for future in running:
                    future.result()
            except BaseException:
                for future in running:
                    future.cancel()
                if self.pool is not None:
                    self.pool.close()
                stop_all()
                raise

    def _model(self, group: Sequence[Pair], others: AbstractContextManager[Any]) -> int:
        count = whole_gpus(group[0].model) if self.pool is not None else 0
        if self.pool is None or not count:
            with others:
                return self._process(group, {})
        with self.pool.lend(count) as names:
            return self._process(group, {VISIBLE: ",".join(names)})

    def _process(self, group: Sequence[Pair], devices: Mapping[str, str]) -> int:
        """One model's tasks in one process."""
        spec = group[0].model
        limits = self.limits(spec)
        tasks = [pair.task for pair in group]
        job = job_of(spec, self.options, tasks, identity=spec.identity(), limits=limits)
        environment = {**child_environment(job, spec.environment), **devices}
        if limits is not None and limits.used_up:
            for task in tasks:
                path = Path(job["folder"]) / "status" / f"{task.name}.json"
                write_whole(path, json.dumps({"state": "stopped", "time": time.time()}))
            return 0
        return run_job(job, environment, str(log_path(spec, self.options)))


def log_path(spec: ModelSpec, options: Options, task: str | None = None) -> Path:
    """Where a model's process writes what it says."""
    path = options.out.resolve() / spec.name / (f"log-{task}.txt" if task else "log.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def ended(how: Standing, pair: Pair, options: Options) -> Standing:
    """A process that went without saying so (killed, out of memory, a crash in C) has failed."""
    if how.over:
        return how
    logs = [log_path(pair.model, options, pair.task.name), log_path(pair.model, options)]
    said = next((text for path in logs if (text := last_lines(path))), "it left no log")
    return Standing("failed", how.done, how.total, how.reused, how.time, f"its process ended while {how.state}: {said}")
