"""The harness's models for a comparison: loaded as its own command loads them, their responses stored as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lm_eval.models  # noqa: F401  (the harness registers its own models only while its registry is empty)
from lm_eval.api.registry import get_model

from qilin_tasks.harness.backends import BACKENDS, BASELINE, PREFIX_CACHED, default_batch_size
from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.harness.vllm_stream import can_stream, stream


def load_model(backend: str, arguments: Mapping[str, Any], *, batch_size: int | str, chunk: int) -> Any:
    """The harness's model; chunked and stored, but for the baselines, which are quick and ask nobody."""
    if backend == BASELINE:
        from qilin_tasks.harness import baseline  # noqa: F401  (registers it)
    if backend == PREFIX_CACHED:
        from qilin_tasks.harness import vllm_prefix  # noqa: F401  (registers it)
    size: int | str = batch_size
    if size == "auto" and backend in BACKENDS:
        size = default_batch_size(backend, device=arguments.get("device")) or 1
    model = get_model(backend).create_from_arg_obj(dict(arguments), {"batch_size": size})
    if backend == BASELINE:
        return model
    if size == "auto" and hasattr(model, "_detect_batch_size"):
        _detect_once(model)
    stored = StoredLM(model, chunk=chunk)
    if can_stream(model):
        stream(stored)
    return stored


def _detect_once(model: Any) -> None:
    """The harness's hf backend looks for the largest batch at every call, which chunks make many."""
    detect = model._detect_batch_size
    found: list[Any] = []

    def once(requests: Any = None, pos: int = 0) -> Any:
        if requests is not None:
            return detect(requests, pos)
        if not found:
            found.append(detect())
        return found[0]

    model._detect_batch_size = once


def uses_chat_template(backend: str, model: Any, wanted: bool | None) -> bool:
    """As wanted; else for every chat server and every tokenizer that has a template."""
    if wanted is not None:
        return wanted
    if backend == BASELINE:
        return False
    chats = backend in BACKENDS and BACKENDS[backend].chat
    return chats or bool(getattr(getattr(model, "tokenizer", None), "chat_template", None))
