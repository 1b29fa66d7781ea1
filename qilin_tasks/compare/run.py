"""Plan a comparison, run what is missing here or on a Ray cluster, and tell what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.compare.processes import child_environment, last_lines, run_job, stop_all
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import HEAD, Options, Pair, Planned, job_of
from qilin_tasks.compare.view import Standing, standing, view
from qilin_tasks.errors import DataError
from qilin_tasks.files import locked, write_whole

POLL_SECONDS = 0.3
#: The environment variables that say which data the tasks read.
DATA_VARIABLES = ("QILIN_DATA", "REQA_DATA", "HF_ENDPOINT")


def only_one(out: Path) -> AbstractContextManager[None]:
    """Hold the folder's lock: two comparisons in one folder would ask everything twice."""
    return locked(out / HEAD, held="another compare command is running on this folder; wait for it or stop it")


def make_plan(options: Options, *, folder: Path) -> list[Planned]:
    """The leaf tasks, their sizes and their signatures; kept in `folder`, as the data are read for it.

    The processes of the models check their documents against it, so that a kept plan can't hide changed data.
    """
    job = {
        "tasks": list(options.tasks),
        "metadata": dict(options.metadata),
        "limit": options.limit,
        "num_fewshot": options.num_fewshot,
        "gen_kwargs": dict(options.gen_kwargs),
        "include_path": list(options.include_path),
    }
    about = {**job, "version": __version__, "data": {name: os.environ.get(name) for name in DATA_VARIABLES}}
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
    return Planned(**{**known, "metrics": tuple(task["metrics"])})


def run_pairs(pairs: Sequence[Pair], options: Options, *, jobs: int, ray_address: str | None) -> list[Standing]:
    """Run every pair that has no result yet and return how all stand in the end."""
    since = time.time()
    todo: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.result is None:
            todo.setdefault(pair.model.name, []).append(pair)
    if todo and ray_address is not None:
        from qilin_tasks.compare.ray_cluster import run_on_ray

        with view() as shown:
            run_on_ray(
                [pair for group in todo.values() for pair in group],
                options,
                address=ray_address,
                poll=lambda: shown.show(pairs, [standing(pair, options.out, since=since) for pair in pairs]),
            )
            shown.show(pairs, [standing(pair, options.out, since=since) for pair in pairs])
    elif todo:
        with view() as shown, ThreadPoolExecutor(max_workers=jobs) as pool:
            running: list[Future[int]] = [pool.submit(run_model, group, options) for group in todo.values()]
            try:
                while True:
                    shown.show(pairs, [standing(pair, options.out, since=since) for pair in pairs])
                    if all(future.done() for future in running):
                        break
                    time.sleep(POLL_SECONDS)
                for future in running:
                    future.result()
            except BaseException:
                for future in running:
                    future.cancel()
                stop_all()
                raise
    return [ended(standing(pair, options.out, since=since), pair, options) for pair in pairs]


def run_model(pairs: Sequence[Pair], options: Options) -> int:
    """Run one model's tasks in one process."""
    spec = pairs[0].model
    job = job_of(spec, options, [pair.task for pair in pairs], identity=spec.identity())
    return run_job(job, child_environment(job, spec.environment), str(log_path(spec, options)))


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
