"""`qilin-baseline`: answers without a language model, as a model of the harness, for a table's floor and ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lm_eval.models  # noqa: F401 - the harness registers its own models only while its registry is empty
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.families import FAMILIES
from qilin_tasks.strategy import Strategy

#: Every strategy of any family.
STRATEGIES = tuple(dict.fromkeys(name for found in FAMILIES.values() for name in found.baselines))


@register_model("qilin-baseline")
class QilinBaseline(LM):  # type: ignore[misc]
    """`--model qilin-baseline --model_args strategy=lead`: reads the document of a request and answers from it.

    Raises SettingError for an unknown strategy, and for one that has no answer to a task.
    """

    # The harness asks this of a model before it runs a task with images; a baseline reads the document.
    MULTIMODAL = True

    def __init__(self, strategy: str = "", **ignored: Any) -> None:
        super().__init__()
        if strategy not in STRATEGIES:
            raise unknown("strategy", strategy, STRATEGIES)
        self.strategy = strategy

    @property
    def tokenizer_name(self) -> str:
        return "qilin-baseline"

    def chat_template(self, chat_template: bool | str = False) -> str:
        return ""

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "\n".join(message["content"] for message in chat_history)

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        answers = []
        for request in requests:
            generate = self._strategy(request).generate
            if generate is None:
                raise self._no_answer(request, FAMILIES[request.family].baselines)
            answers.append(generate(request.doc))
        return answers

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        answers = []
        for request in requests:
            loglikelihood = self._strategy(request).loglikelihood
            if loglikelihood is None:
                scoring = {n: s for n, s in FAMILIES[request.family].baselines.items() if s.loglikelihood}
                raise self._no_answer(request, scoring)
            answers.append((loglikelihood(request.doc, request.idx), False))
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise SettingError("qilin-baseline has no answer to rolling log-likelihoods: choose one of our tasks")

    def _strategy(self, request: Any) -> Strategy:
        """What answers the request: our tasks name their family on it."""
        family = FAMILIES.get(getattr(request, "family", ""))
        if family is None:
            raise SettingError(f"task {request.task_name!r} is none of qilin-tasks, and qilin-baseline reads ours only")
        if self.strategy not in family.baselines:
            raise self._no_answer(request, family.baselines)
        return family.baselines[self.strategy]

    def _no_answer(self, request: Any, choices: Any) -> SettingError:
        return SettingError(
            f"strategy {self.strategy!r} has no answer to {request.request_type!r} requests of task "
            f"{request.task_name!r}: choose from {', '.join(sorted(choices))}"
        )
