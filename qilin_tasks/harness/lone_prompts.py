"""Prompts that belong to no task, through any of the harness's models, answers stored as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from lm_eval.api.instance import Instance

from qilin_tasks.errors import SettingError
from qilin_tasks.harness.backends import BASELINE
from qilin_tasks.harness.length import check_prompts_fit
from qilin_tasks.harness.models import load_model, uses_chat_template
from qilin_tasks.harness.response_store import ResponseStore, request_keys
from qilin_tasks.parsing.answers import REFUSED


class Loaded(NamedTuple):
    """A model, and whether its prompts are turns of a chat."""

    model: Any
    chat: bool


@dataclass
class LonePrompts:
    """A model and its store; called with prompts, it gives `repeats` answers to each.

    The model is loaded when a prompt is first asked that is not stored whole. What is stored is not asked again, and
    equal prompts are asked once. A prompt that a server's content filter refuses gives None; any other failure of the
    model is raised, and the same call goes on from there.
    """

    load: Callable[[], Loaded]
    store: ResponseStore
    arguments: Mapping[str, Any]
    generation: Mapping[str, Any]
    system_instruction: str | None = None

    def __call__(self, prompts: Sequence[str], *, repeats: int, longest: int) -> list[list[str | None]]:
        """`longest` tokens an answer, where `generation` says nothing. Raises SettingError for too long prompts."""
        settings = {"until": [], "max_gen_toks": longest, **self.generation}
        # By the prompt as it is given: what a template makes of it only the model knows.
        keys = {prompt: request_keys("lone", [(prompt, settings)] * repeats) for prompt in dict.fromkeys(prompts)}
        known = self.store.get([key for some in keys.values() for key in some])
        missing = [prompt for prompt, some in keys.items() if any(key not in known for key in some)]
        if missing:
            answers = self._ask(missing, settings, repeats=repeats)
            asked = dict(zip((key for prompt in missing for key in keys[prompt]), answers, strict=True))
            self.store.put(asked.items())
            known |= asked
        elif keys:
            _tell(len(known), len(known), len(known))
        return [[None if known[key] == REFUSED else known[key] for key in keys[prompt]] for prompt in prompts]

    def _ask(self, prompts: Sequence[str], settings: Mapping[str, Any], *, repeats: int) -> list[str]:
        """`repeats` answers to each prompt, one after the other; the model's store has each as it comes."""
        loaded = self.load()
        # Some backends change what they are given: each request has a copy of its own.
        requests = [
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(self._turns(loaded, prompt), {**settings}),
                idx=0,
            )
            for prompt in prompts
            for _ in range(repeats)
        ]
        check_prompts_fit(
            requests, metadata=self.arguments, task="judge", way_out="lower --answer-chars, or choose a longer model"
        )
        loaded.model.store = self.store
        loaded.model.progress = _tell
        return list(loaded.model.generate_until(requests))

    def _turns(self, loaded: Loaded, prompt: str) -> Any:
        if not loaded.chat:
            return f"{self.system_instruction}\n\n{prompt}" if self.system_instruction else prompt
        turns = [{"role": "user", "content": prompt}]
        if self.system_instruction:
            turns.insert(0, {"role": "system", "content": self.system_instruction})
        return loaded.model.apply_chat_template(turns)


def lone_prompts(
    backend: str,
    arguments: Mapping[str, Any],
    *,
    store: ResponseStore,
    batch_size: int | str,
    chat_template: bool | None,
    generation: Mapping[str, Any],
    system_instruction: str | None,
) -> LonePrompts:
    """Nothing is loaded yet. Raises SettingError for a baseline, which reads documents and no prompts."""
    if backend == BASELINE:
        raise SettingError(f"{BASELINE} answers documents, not prompts: choose a language model")

    @cache
    def load() -> Loaded:
        model = load_model(backend, arguments, batch_size=batch_size, chunk=64, on_refusal="empty")
        return Loaded(model, uses_chat_template(backend, model, chat_template))

    return LonePrompts(load, store, arguments, generation, system_instruction)


def _tell(done: int, total: int, reused: int) -> None:
    if done == total or done % max(1, total // 20) == 0:
        print(f"judge: {done} of {total} requests answered ({reused} stored before)", file=sys.stderr, flush=True)
