"""What a comparison would do: each command, what it would reuse, and about how many tokens it would ask."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from qilin_tasks.compare.processes import command_of
from qilin_tasks.compare.secrets import REFERENCE, blot, redact, references
from qilin_tasks.compare.specs import LOGGERS, ModelSpec
from qilin_tasks.compare.state import Options, Pair, settings_of, system_parts
from qilin_tasks.errors import DependencyError
from qilin_tasks.harness.backends import BACKENDS, BASELINE, default_batch_size
from qilin_tasks.harness.length import load_model

#: The seed of the harness's seeded backends where their arguments name none; its command line sets another.
_SEED = 1234


def harness_command(pair: Pair, options: Options) -> str:
    """A shell's command that sends one pair's requests, to copy: without resume, keys as `${NAME}` of the environment.

    `qilin-tasks run` is the harness's own command line with our tasks in its path.
    """
    spec, settings = pair.model, settings_of(pair.model, options)
    backend = BACKENDS[spec.backend]
    arguments = {**({"seed": _SEED} if backend.seeded else {}), **redact(spec.args)}
    size: int | str = spec.batch_size
    if size == "auto":
        size = default_batch_size(spec.backend, device=spec.args.get("device")) or 1
    parts = ["qilin-tasks", "run", "--model", spec.backend]
    parts += ["--model_args", json.dumps(arguments, ensure_ascii=False)]
    parts += ["--tasks", pair.task.name, "--batch_size", str(size), "--log_samples"]
    if _as_chat(spec):
        parts.append("--apply_chat_template")
    # A comparison hands every task the settings of all; the command has one task, and refuses those of others.
    known = pair.task.settings
    metadata = {key: value for key, value in settings["metadata"].items() if known is None or key in known}
    given = {"metadata": metadata, "gen_kwargs": settings["generation"]}
    given |= {name: redact(getattr(spec, name)) for name in LOGGERS}
    for flag, value in ((f"--{name}", value) for name, value in given.items()):
        if value:
            parts += [flag, json.dumps(value, ensure_ascii=False)]
    for flag, number in (("--limit", options.limit), ("--num_fewshot", options.num_fewshot)):
        if number is not None:
            parts += [flag, f"{number:g}"]
    if spec.system_instruction:
        parts += ["--system_instruction", spec.system_instruction]
    for path in options.include_path:
        parts += ["--include_path", path]
    # Not into the comparison's folder: a report would take it for another run of the model.
    parts += ["--output_path", str(options.out.with_name(f"{options.out.name}-lm_eval") / spec.name)]
    variables = [f"{name}={_quoted(value)}" for name, value in redact(spec.environment).items()]
    return blot(" ".join([*variables, *map(_quoted, parts)]))


def _quoted(word: str) -> str:
    """As shlex.quote, but the shell puts in what `${NAME}` refers to."""
    if not references(word):
        return shlex.quote(word)
    parts = REFERENCE.split(word)
    plain = [re.sub(r'(["\\\\$`])', r"\\\1", part) for part in parts[::2]]
    names = [f"${{{name}}}" for name in parts[1::2]]
    return '"' + "".join(text for two in itertools.zip_longest(plain, names, fillvalue="") for text in two) + '"'


def _longest(spec: ModelSpec) -> float | None:
    """The most tokens of an answer that models.yaml sets for this model alone."""
    names = ("max_gen_toks", "max_tokens", "max_new_tokens", "max_completion_tokens")
    return min((float(spec.generation[name]) for name in names if name in spec.generation), default=None)


def _as_chat(spec: ModelSpec) -> bool:
    """Whether a run would use a chat template, as far as it can be told without loading the model."""
    backend = BACKENDS[spec.backend]
    if spec.chat_template is not None or not backend.local:
        return backend.chat if spec.chat_template is None else spec.chat_template
    try:
        name = str(spec.args.get("tokenizer") or spec.args[backend.argument])
        return load_model(name, revision=str(spec.args.get("revision") or "main")).chats
    except DependencyError as error:
        print(f"note: {spec.name}: {error}, so --apply_chat_template may be missing below", file=sys.stderr)
        return False


def _tokens(pair: Pair) -> tuple[float, float, float]:
    """About how many prompt and answer tokens a pair will take, and at most how many answer tokens."""
    task = pair.task
    if pair.model.backend == BASELINE:
        return 0.0, 0.0, 0.0
    share = 1 - min(1.0, pair.stored / task.requests) if task.requests else 0.0
    most: float = task.most_answer_tokens
    own = _longest(pair.model)
    if own is not None and most:
        most = own * task.requests
    return task.prompt_tokens * share, min(task.answer_tokens, most) * share, most * share


def describe(pairs: Sequence[Pair], options: Options) -> Iterator[str]:
    """Lines to print: the process of each model, then its tasks; the last line sums up."""
    prompts = answers = most = 0.0
    for name in dict.fromkeys(pair.model.name for pair in pairs):
        mine = [pair for pair in pairs if pair.model.name == name]
        todo = [pair for pair in mine if pair.result is None]
        yield f"# {name} ({mine[0].model.backend})"
        if todo:
            job = Path(options.out).resolve() / name / "jobs" / "….json"
            yield f"process: {shlex.join(command_of(job))}"
        for pair in mine:
            task = pair.task
            if pair.result is not None:
                yield f"{task.name}: finished, {task.n} documents reused"
                continue
            tokens = _tokens(pair)
            prompts, answers, most = prompts + tokens[0], answers + tokens[1], most + tokens[2]
            yield (
                f"{task.name}: {task.n} documents, {task.requests} requests, {pair.stored} answers reused; about "
                f"{tokens[0]:,.0f} prompt tokens, {tokens[1]:,.0f} answer tokens as long as the references (at most "
                f"{tokens[2]:,.0f})"
            )
            yield f"  as: {harness_command(pair, options)}"
    if len(systems := {part for pair in pairs for part in system_parts(pair.model) if part != "chat"}):
        yield f"models bring their own {', '.join(sorted(systems))}: the report compares them as systems"
    yield f"in all: about {prompts:,.0f} prompt tokens, {answers:,.0f} answer tokens (at most {most:,.0f})"
