"""`qilin-vllm`: the harness's vLLM backend, without the work that log-likelihoods do not need.

vLLM reads no cached prefix for a request that wants log-probabilities of its prompt, since those of the cached part
would be missing, and runs the output layer over all of the prompt. The harness reads only the log-probabilities of the
continuation, so a cached beginning of the context is harmless, and so are rows that were never computed.
"""

from __future__ import annotations

import logging
from typing import Any

from lm_eval.api.registry import register_model
from lm_eval.models.vllm_causallms import VLLM

from qilin_tasks.harness.prefix_cache import PrefixReads
from qilin_tasks.harness.vllm_worker import SCORED_FROM, ScoredTail

logger = logging.getLogger(__name__)


@register_model("qilin-vllm")
class PrefixCachedVLLM(VLLM):  # type: ignore[misc]
    """As `--model vllm`; `prompt_tokens` and `cached_tokens` count what log-likelihoods asked for and found cached.

    Requests go to the engine sorted, so that those which begin alike follow each other. `read_prefix_cache=False` and
    `score_tails=False` give vLLM's own behaviour.
    """

    def __init__(self, *args: Any, read_prefix_cache: bool = True, score_tails: bool = True, **kwargs: Any) -> None:
        if score_tails:
            kwargs.setdefault("worker_extension_cls", f"{ScoredTail.__module__}.{ScoredTail.__qualname__}")
        super().__init__(*args, **kwargs)
        self.read_prefix_cache = read_prefix_cache
        self.score_tails = score_tails and self.data_parallel_size == 1 and self._can_score_tails()
        self.prompt_tokens = self.cached_tokens = 0
        self._contexts: dict[tuple[int, ...], int] = {}
        self._reads: PrefixReads | None = None
        self._generated = False

    def _can_score_tails(self) -> bool:
        """Whether every worker's runner could be told to leave out the rows that nobody reads."""
        can = all(self.model.collective_rpc("qilin_score_tails"))
        if not can:
            logger.warning("qilin-vllm: this vLLM's runner is not known; its output layer runs over whole prompts")
        return can

    def _loglikelihood_tokens(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        longest = self.max_length - 1
        for _, context, continuation in requests:
            tokens = tuple((context + continuation)[-longest:])
            length = len(tokens) - len(continuation)
            # The same tokens may be split in two ways: the earlier split needs more of them computed.
            self._contexts[tokens] = max(min(length, self._contexts.get(tokens, length)), 0)
        scores: list[tuple[float, bool]] = super()._loglikelihood_tokens(requests, disable_tqdm=disable_tqdm)
        self._contexts.clear()
        return scores

    def _model_generate(self, requests: list[list[int]], generate: bool = False, sampling_params: Any = None) -> Any:
        if generate or self.data_parallel_size > 1:
            self._generated = True
            return super()._model_generate(requests, generate=generate, sampling_params=sampling_params)
        from vllm import SamplingParams, TokensPrompt

        order = sorted(range(len(requests)), key=requests.__getitem__)
        ordered = [requests[position] for position in order]
        contexts = [self._contexts.get(tuple(tokens), 0) for tokens in ordered]
        if self.read_prefix_cache:
            if self._generated:
                # What generations left in the cache is not in the record of what was sent.
                self.model.reset_prefix_cache()
                self._reads, self._generated = None, False
            if self._reads is None:
                self._reads = PrefixReads(self.model.llm_engine.vllm_config.cache_config.block_size)
            allowed = self._reads.allowed(ordered, contexts)
        else:
            allowed = [False] * len(ordered)
        outputs = self.model.generate(
            [TokensPrompt(prompt_token_ids=tokens) for tokens in ordered],
            sampling_params=[
                SamplingParams(
                    temperature=0,
                    prompt_logprobs=1,
                    max_tokens=1,
                    detokenize=False,
                    skip_reading_prefix_cache=not readable,
                    extra_args={SCORED_FROM: context} if self.score_tails else None,
                )
                for readable, context in zip(allowed, contexts, strict=True)
            ],
            use_tqdm=self.batch_size == "auto",
            lora_request=self.lora_request,
        )
        self.prompt_tokens += sum(map(len, ordered))
        self.cached_tokens += sum(output.num_cached_tokens or 0 for output in outputs)
        found = dict(zip(order, outputs, strict=True))
        return [found[position] for position in range(len(requests))]
