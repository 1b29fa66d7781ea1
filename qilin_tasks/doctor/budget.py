"""Whether the longest prompt and the answer fit the model's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qilin_tasks.doctor.findings import Finding
from qilin_tasks.errors import DependencyError
from qilin_tasks.harness.length import WAYS_OUT, Model, load_model, needed


def model_of(name: str) -> Model | Finding:
    """The model's tokenizer and length, or the finding that says why they can't be read."""
    try:
        return load_model(name, chat=True)
    except DependencyError as error:
        fix = "give a folder with the model, or a hub id that can be reached, or leave --model out for an estimate"
        return Finding("context", "fail", f"--model {name}: {error}", fix)


def context(
    tasks: Mapping[str, Sequence[Any]], model: Model, *, max_model_len: int | None, max_gen_toks: int | None
) -> Finding:
    """The task that needs most (longest prompt plus answer) against `max_model_len`, else the model's own length.

    `tasks` holds the harness's requests of each task.
    """
    if max_model_len and model.length and max_model_len > model.length:
        detail = f"--max_model_len {max_model_len}, but {model.name} has {model.length} positions"
        return Finding("context", "fail", detail, f"--max_model_len {model.length} or less")
    needs = {name: needed(requests, model, max_gen_toks=max_gen_toks) for name, requests in tasks.items()}
    name = max(needs, key=lambda task: sum(needs[task]))
    prompt, answer = needs[name]
    about = "" if model.exact else f" (estimated by {model.name})"
    detail = f"{name} needs most, {prompt} tokens of prompt + {answer} of answer = {prompt + answer}{about}"
    limit = max_model_len or model.length
    if limit is None:
        fix = "give --model PATH_OR_ID, --max_model_len N, or both"
        return Finding("context", "warn", f"{detail}; no limit to compare with", fix)
    if prompt + answer <= limit:
        return Finding("context", "ok", f"{detail}, of {limit}")
    # An estimate that doesn't fit proves nothing yet.
    return Finding("context", "fail" if model.exact else "warn", f"{detail}, the limit is {limit}", WAYS_OUT)
