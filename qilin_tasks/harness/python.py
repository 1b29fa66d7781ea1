"""Tasks asked and scored from Python: `lm_eval.simple_evaluate` with our tasks, models, checks and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import lm_eval

from qilin_tasks.harness import backends, task_manager
from qilin_tasks.harness.registry import register


def evaluate(
    tasks: str | Sequence[str],
    model: Any,
    *,
    model_args: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    include_path: Sequence[str] = (),
    batch_size: int | str | None = None,
    chat: bool | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The harness's results of tasks, groups or tags, with every sample (`results["samples"][task]`).

    `model` is a backend's name with its `model_args`, or a harness model. `metadata` are settings of the tasks,
    `options` those of `lm_eval.simple_evaluate` (`limit`, `device`, `gen_kwargs`, `random_seed`, …). Without
    `batch_size` a backend gets what `qilin-tasks run` gives it (`auto` for vLLM); `chat` applies the chat template, by
    default for chat servers only. Raises QilinTasksError, before a model is loaded, for names, settings, data and
    model folders that are not in order.

    >>> import os
    >>> os.environ["QILIN_DATA"] = "sample"
    >>> results = evaluate(
    ...     "qilin_dqa_oracle", "qilin-baseline", model_args={"strategy": "reference"}, metadata={"bertscore": "off"}
    ... )
    >>> results["results"]["qilin_dqa_oracle"]["rouge_l,none"]
    1.0
    >>> results["samples"]["qilin_dqa_oracle"][0]["rouge_l"]
    1.0
    """
    names = [tasks] if isinstance(tasks, str) else list(tasks)
    arguments, settings = dict(model_args or {}), dict(metadata or {})
    register()
    manager = task_manager.task_manager(names, metadata={**arguments, **settings}, include_path=include_path)
    matches = [match for name in names for match in manager.match_tasks([name])]
    task_manager.check_settings(matches, manager, settings, shots=options.get("num_fewshot"))
    if isinstance(model, str):
        backends.check_weights(model, arguments, where="model_args")
        if batch_size is None:
            batch_size = backends.default_batch_size(model, device=options.get("device") or arguments.get("device"))
        if chat is None:
            chat = model in backends.BACKENDS and backends.BACKENDS[model].chat
    # Loaded before the model, so that data that is not in order costs no minutes.
    loaded = manager.load(matches)
    manager.load = lambda specs, overrides=None: loaded
    results: dict[str, Any] = lm_eval.simple_evaluate(
        model=model,
        model_args=arguments if isinstance(model, str) else None,
        tasks=list(dict.fromkeys(matches)),
        task_manager=manager,
        batch_size=batch_size,
        apply_chat_template=bool(chat),
        **{"log_samples": True, **options},
    )
    return results
