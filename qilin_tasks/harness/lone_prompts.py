"""Prompts that belong to no task, through any of the harness's models, answers stored as they come."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval.api.instance import Instance

from qilin_tasks.errors import SettingError
from qilin_tasks.harness.backends import BASELINE
from qilin_tasks.harness.length import check_prompts_fit
from qilin_tasks.harness.models import load_model, uses_chat_template
from qilin_tasks.harness.response_store import ResponseStore
from qilin_tasks.parsing.answers import REFUSED


@dataclass
class LonePrompts:
    """A loaded model and its store; called with prompts, it gives `repeats` answers to each.

    What is stored is not asked again, and equal prompts are asked once. A prompt that a server's content filter refuses
    gives None; any other failure of the model is raised, and the same call goes on from there.
    """

    model: Any
    store: ResponseStore
    arguments: Mapping[str, Any]
    chat: bool
    generation: Mapping[str, Any]
    system_instruction: str | None = None

    def __call__(self, prompts: Sequence[str], *, repeats: int, longest: int) -> list[list[str | None]]:
        """`longest` tokens an answer, where `generation` says nothing. Raises SettingError for too long prompts."""
        unique = list(dict.fromkeys(prompts))
        # Some backends change what they are given: each request has a copy of its own.
        requests = [
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(self._turns(prompt), {"until": [], "max_gen_toks": longest, **self.generation}),
                idx=0,
            )
            for prompt in unique
            for _ in range(repeats)
        ]
        if not requests:
            return []
        check_prompts_fit(
            requests, metadata=self.arguments, task="judge", way_out="lower --answer-chars, or choose a longer model"
        )
        self.model.store = self.store
        self.model.progress = _tell
        answers = self.model.generate_until(requests)
        by_prompt = {
            prompt: [None if text == REFUSED else text for text in answers[i * repeats : (i + 1) * repeats]]
            for i, prompt in enumerate(unique)
        }
        return [by_prompt[prompt] for prompt in prompts]

    def _turns(self, prompt: str) -> Any:
        if not self.chat:
            return f"{self.system_instruction}\n\n{prompt}" if self.system_instruction else prompt
        turns = [{"role": "user", "content": prompt}]
        if self.system_instruction:
            turns.insert(0, {"role": "system", "content": self.system_instruction})
        return self.model.apply_chat_template(turns)


def load_lone_prompts(
    backend: str,
    arguments: Mapping[str, Any],
    *,
    store: ResponseStore,
    batch_size: int | str,
    chat_template: bool | None,
    generation: Mapping[str, Any],
    system_instruction: str | None,
) -> LonePrompts:
    """Load the model. Raises SettingError for a baseline, which reads documents and no prompts."""
    if backend == BASELINE:
        raise SettingError(f"{BASELINE} answers documents, not prompts: choose a language model")
    model = load_model(backend, arguments, batch_size=batch_size, chunk=64, on_refusal="empty")
    chat = uses_chat_template(backend, model, chat_template)
    return LonePrompts(model, store, arguments, chat, generation, system_instruction)


def _tell(done: int, total: int, reused: int) -> None:
    if done == total or done % max(1, total // 20) == 0:
        print(f"judge: {done} of {total} requests answered ({reused} stored before)", file=sys.stderr, flush=True)
