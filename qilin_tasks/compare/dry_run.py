"""What a comparison would do: each command, what it would reuse, and about how many tokens it would ask."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from qilin_tasks.compare.processes import command_of
from qilin_tasks.compare.secrets import blot, redact
from qilin_tasks.compare.specs import BACKENDS, LOCAL_WEIGHTS, ModelSpec
from qilin_tasks.compare.state import Options, Pair, settings_of, system_parts


def templated(spec: ModelSpec) -> bool:
    """Whether the model's process will apply a chat template, as far as can be told before it loads the model."""
    if spec.chat_template is not None:
        return spec.chat_template
    if spec.backend not in LOCAL_WEIGHTS:
        return "chat" in spec.backend
    from transformers import AutoTokenizer

    name = spec.args.get("tokenizer") or spec.args[BACKENDS[spec.backend][0]]
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=spec.args.get("revision", "main"))
    except (OSError, ValueError):
        return False
    return bool(tokenizer.chat_template)


def harness_command(pair: Pair, options: Options) -> str:
    """The harness's own command for one pair, to copy: without resume, with the keys left in the environment."""
    spec, settings = pair.model, settings_of(pair.model, options)
    parts = [
        "lm_eval",
        "run",
        "--model",
        spec.backend,
        "--model_args",
        json.dumps(redact(spec.args), ensure_ascii=False),
    ]
    parts += ["--tasks", pair.task.name, "--batch_size", str(spec.batch_size), "--log_samples"]
    if templated(spec):
        parts.append("--apply_chat_template")
    for flag, value in (("--metadata", settings["metadata"]), ("--gen_kwargs", settings["generation"])):
        if value:
            parts += [flag, json.dumps(value, ensure_ascii=False)]
    for flag, number in (("--limit", options.limit), ("--num_fewshot", options.num_fewshot)):
        if number is not None:
            parts += [flag, f"{number:g}"]
    if spec.system_instruction:
        parts += ["--system_instruction", spec.system_instruction]
    for path in options.include_path:
        parts += ["--include_path", path]
    return blot(shlex.join([*parts, "--output_path", str(options.out / spec.name)]))


def _longest(spec: ModelSpec) -> float:
    """The most tokens of an answer that models.yaml sets for this model alone."""
    names = ("max_gen_toks", "max_tokens", "max_new_tokens", "max_completion_tokens")
    return min((float(spec.generation[name]) for name in names if name in spec.generation), default=float("inf"))


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
            share = 1 - min(1.0, pair.stored / task.requests) if task.requests else 0.0
            longest = min(task.most_answer_tokens, _longest(pair.model) * task.requests)
            tokens = (task.prompt_tokens * share, min(task.answer_tokens, longest) * share, longest * share)
            if pair.model.backend == "qilin-baseline":
                tokens = (0.0, 0.0, 0.0)
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
