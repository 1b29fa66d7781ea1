"""Runs the real harness in this process, with our tasks included, on data of the test's choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import lm_eval
import lm_eval.evaluator
import yaml
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from qilin_tasks import tasks_folder

# It lists every installed package through a pip process, seconds for each run, for a report that no test reads.
lm_eval.evaluator.add_env_info = lambda results: None


def evaluate(
    tasks: Sequence[str], model: LM | str, *, metadata: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """The harness's results dict. `metadata` as `--metadata`; BERTScore is off unless it says otherwise."""
    manager = TaskManager(
        include_path=str(tasks_folder()), include_defaults=False, metadata={"bertscore": "off", **(metadata or {})}
    )
    options = {"bootstrap_iters": 100, **options}
    results = lm_eval.simple_evaluate(model=model, tasks=list(tasks), task_manager=manager, **options)
    assert results is not None
    return results


class ScriptedModel(LM):
    """A harness model whose answers are given: a text for all requests, or a function of the request."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
        self.seen: list[Any] = []

    @property
    def tokenizer_name(self) -> str:
        return "scripted"

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        turns = "".join(f"<|{turn['role']}|>{turn['content']}" for turn in chat_history)
        return turns + ("<|assistant|>" if add_generation_prompt else "")

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[Any]:
        self.seen += requests
        return [self.answer(request) if callable(self.answer) else self.answer for request in requests]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        self.seen += requests
        return [(self.answer(request) if callable(self.answer) else self.answer, False) for request in requests]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError("no task of ours asks for it")


def defaults(name: str) -> dict[str, Any]:
    """The settings of a base file, `reqa/_reqa_listwise_yaml`, without those that a task must give."""
    text = (tasks_folder() / name).read_text(encoding="utf-8").replace("!function ", "")
    return dict(yaml.safe_load(text)["dataset_kwargs"])


def metric(results: Mapping[str, Any], task: str, name: str) -> float:
    return results["results"][task][f"{name},none"]
