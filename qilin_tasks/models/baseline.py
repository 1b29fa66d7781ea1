"""`qilin-baseline`: answers without a language model, as a model of the harness, for a table's floor and ceiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lm_eval.models  # noqa: F401 - the harness registers its own models only while its registry is empty
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.models.ranking_strategies import RANKING_STRATEGIES
from qilin_tasks.models.reqa_strategies import with_reqa
from qilin_tasks.models.strategies import ANSWER_STRATEGIES, Strategy

STRATEGIES: dict[str, Strategy] = with_reqa({**ANSWER_STRATEGIES, **RANKING_STRATEGIES})


@register_model("qilin-baseline")
class QilinBaseline(LM):  # type: ignore[misc]
    """`--model qilin-baseline --model_args strategy=lead`: reads the document of a request and answers from it.

    Raises SettingError for an unknown strategy, and for one that has no answer to a task's kind of request.
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
        answer = self._needed(STRATEGIES[self.strategy].generate, requests)
        return [answer(request.doc) for request in requests]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        value = self._needed(STRATEGIES[self.strategy].loglikelihood, requests)
        return [(value(request.doc, request.idx), False) for request in requests]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise SettingError("qilin-baseline has no answer to rolling log-likelihoods: choose one of our tasks")

    def _needed(self, method: Callable[..., Any] | None, requests: Sequence[Any]) -> Callable[..., Any]:
        if method is None:
            raise SettingError(
                f"strategy {self.strategy!r} has no answer to {requests[0].request_type!r} requests "
                f"(task {requests[0].task_name!r}): choose another of {', '.join(sorted(STRATEGIES))}"
            )
        return method
