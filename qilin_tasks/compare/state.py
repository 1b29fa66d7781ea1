"""What a comparison's folder holds: jobs, finished (model, task) pairs, stored responses; mismatches are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.compare.budget import Budget, Limits
from qilin_tasks.compare.specs import LOGGERS, ModelSpec
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.files import locked, write_whole
from qilin_tasks.harness.response_store import stored_count
from qilin_tasks.harness.store_repair import repair
from qilin_tasks.results.reader import TaskResult, iter_samples, read_results
from qilin_tasks.signature import signature_parts

FORMAT = 1
HEAD = "compare.json"
HEAD_SECONDS = 30.0


@dataclass(frozen=True)
class Options:
    """What is asked of every model; a model's own `generation` goes over `gen_kwargs`."""

    tasks: tuple[str, ...]
    out: Path
    metadata: Mapping[str, Any] = field(default_factory=dict)
    gen_kwargs: Mapping[str, Any] = field(default_factory=dict)
    limit: float | None = None
    num_fewshot: int | None = None
    include_path: tuple[str, ...] = ()
    chunk: int = 512
    on_refusal: str = "stop"
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class Planned:
    """A leaf task: how much it asks, and what its results will say of themselves.

    `settings` are the names of those that it reads, None where any may be.
    """

    name: str
    n: int
    requests: int
    signature: str | None
    metrics: tuple[str, ...]
    prompt_tokens: int
    answer_tokens: int
    most_answer_tokens: int
    settings: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Pair:
    """A model and a task: `result` when finished, `stored` responses of `task.requests` when not."""

    model: ModelSpec
    task: Planned
    result: TaskResult | None
    stored: int


def settings_of(spec: ModelSpec, options: Options) -> dict[str, Any]:
    """The settings that a (model, task) result depends on besides the model's identity and the task's signature."""
    return {
        "metadata": dict(options.metadata),
        "limit": options.limit,
        "generation": {**options.gen_kwargs, **spec.generation},
        "num_fewshot": options.num_fewshot,
        "chat_template": spec.chat_template,
        "system_instruction": spec.system_instruction,
    }


def system_parts(spec: ModelSpec) -> tuple[str, ...]:
    """The parts of the signature that belong to the model: its template, and what models.yaml gives it alone."""
    own = (("chat", True), ("system", spec.system_instruction is not None), ("gen", bool(spec.generation)))
    return tuple(part for part, given in own if given)


def job_of(
    spec: ModelSpec,
    options: Options,
    tasks: Sequence[Planned],
    *,
    identity: Mapping[str, Any],
    limits: Limits | None = None,
) -> dict[str, Any]:
    """What the process of a model reads (qilin_tasks.compare.worker): references to the environment, no keys."""
    return {
        "format": FORMAT,
        "name": spec.name,
        "backend": spec.backend,
        "args": spec.args,
        "batch_size": spec.batch_size,
        "chat_template": spec.chat_template,
        "system_instruction": spec.system_instruction,
        "gen_kwargs": {**options.gen_kwargs, **spec.generation},
        "metadata": dict(options.metadata),
        "limit": options.limit,
        "num_fewshot": options.num_fewshot,
        "include_path": list(options.include_path),
        "chunk": options.chunk,
        "on_refusal": spec.on_refusal or options.on_refusal,
        "identity": dict(identity),
        "settings": settings_of(spec, options),
        "prices": spec.prices,
        **{name: getattr(spec, name) for name in LOGGERS},
        "limits": asdict(limits) if limits else None,
        "system_parts": list(system_parts(spec)),
        "tasks": [{"name": task.name, "n": task.n, "signature": task.signature} for task in tasks],
        "folder": str((options.out / spec.name).resolve()),
    }


def check_head(options: Options) -> None:
    """Refuses a folder that another version's comparison wrote, or that holds something else."""
    path = options.out / HEAD
    if not path.exists():
        others = (
            sorted(p.name for p in options.out.iterdir() if not p.name.startswith(".")) if options.out.is_dir() else []
        )
        if others:
            raise DataError(
                f"--out {options.out} holds {', '.join(others[:3])} but no {HEAD}: it is no comparison's folder; "
                "give a new or an empty one"
            )
        return
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
        form, version = head["format"], head["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a comparison's file ({error!r}); use another --out") from error
    if form != FORMAT:
        raise DataError(
            f"{options.out} was written by qilin-tasks {version} (format {form}), this is {__version__} (format "
            f"{FORMAT}); use another --out, or that version"
        )


def write_head(options: Options, specs: Sequence[ModelSpec], tasks: Sequence[Planned]) -> None:
    """Note what is compared; models of earlier runs of the same folder stay listed."""
    path = options.out / HEAD
    # The calls for single models (--only) hold no lock of the whole folder: read and written under one of its own.
    with locked(path.with_name(f".{HEAD}-writing"), seconds=HEAD_SECONDS):
        _write_head(path, specs, tasks)


def _write_head(path: Path, specs: Sequence[ModelSpec], tasks: Sequence[Planned]) -> None:
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    models = {**known.get("models", {}), **{spec.name: {"backend": spec.backend, "args": spec.args} for spec in specs}}
    names = list(dict.fromkeys([*known.get("tasks", []), *(task.name for task in tasks)]))
    write_whole(
        path,
        json.dumps(
            {"format": FORMAT, "version": __version__, "tasks": names, "models": models}, ensure_ascii=False, indent=1
        ),
    )


def finished(spec: ModelSpec, task: Planned, options: Options, *, identity: Mapping[str, Any]) -> TaskResult | None:
    """The result of a pair that needs no more work. Raises where it was made with other settings, data or damage."""
    folder = options.out / spec.name / task.name
    if not folder.exists():
        return None
    files = sorted(folder.glob("results_*.json"))
    if not files:
        raise DataError(
            f"{folder} holds no results_*.json: it was edited; delete it, stored answers are not asked again"
        )
    # The oldest is the run's own; rescored files stand beside it.
    result = next(r for r in read_results(files[0]) if r.task == task.name)
    made = json.loads(files[0].read_text(encoding="utf-8")).get("compare") or {}
    wanted = {"settings": settings_of(spec, options), "identity": dict(identity)}
    for part, now in wanted.items():
        there = made.get(part) or {}
        # JSON has no tuples: compare what both sides look like on disk.
        now = json.loads(json.dumps(now, default=str))
        changed = [key for key in {**there, **now} if there.get(key) != now.get(key)]
        if changed:
            key = changed[0]
            raise SettingError(
                f"{folder} was made with other {part}: {key} was {there.get(key)!r}, now {now.get(key)!r}; use another "
                "--out or another name for the model, or delete that folder"
            )
    there_data, now_data = (signature_parts(s).get("data") for s in (result.signature, task.signature))
    if there_data != now_data:
        raise DataError(
            f"{folder} was made on the data {there_data}, but the data are {now_data} now (QILIN_DATA, REQA_DATA?); "
            "rows of different data can't be compared: use another --out"
        )
    if result.n != task.n:
        raise DataError(f"{folder} holds {result.n} documents, but {task.n} are planned; use another --out")
    for _ in iter_samples(result):
        pass
    return result


def store_path(options: Options, model: str, task: str) -> Path:
    """Where a model's answers to a task are kept."""
    return options.out / model / "responses" / f"{task}.sqlite"


def repair_stores(specs: Sequence[ModelSpec], tasks: Sequence[Planned], options: Options) -> Iterator[str]:
    """Set every broken store aside, its whole rows kept in a fresh one; a line for each."""
    for spec in specs:
        identity = spec.identity()
        for task in tasks:
            path = store_path(options, spec.name, task.name)
            if (done := repair(path, identity=identity)) is not None:
                yield f"{path}: {done[0]} answers kept, the broken file is {done[1].name}"


def pair_up(specs: Sequence[ModelSpec], tasks: Sequence[Planned], options: Options) -> list[Pair]:
    """Every (model, task) with what is there already, models first. Raises on anything that can't be gone on with."""
    pairs = []
    for spec in specs:
        identity = spec.identity()
        for task in tasks:
            result = finished(spec, task, options, identity=identity)
            path = store_path(options, spec.name, task.name)
            pairs.append(Pair(spec, task, result, 0 if result else stored_count(path, identity=identity)))
    return pairs
