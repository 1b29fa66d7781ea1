"""`qilin-vllm`: the harness's vLLM backend, with the prefix cache read for log-likelihoods as well.

vLLM reads no cached prefix for a request that wants log-probabilities of its prompt, since those of the cached part
would be missing. The harness reads only those of the continuation, so a cached beginning of the context is harmless.
"""

from __future__ import annotations

from typing import Any

from lm_eval.api.registry import register_model
from lm_eval.models.vllm_causallms import VLLM

from qilin_tasks.harness.prefix_cache import PrefixReads


@register_model("qilin-vllm")
class PrefixCachedVLLM(VLLM):  # type: ignore[misc]
    """As `--model vllm`; `prompt_tokens` and `cached_tokens` count what log-likelihoods asked for and found cached.

    Requests go to the engine sorted, so that those which begin alike follow each other. `read_prefix_cache=False`
    gives vLLM's own behaviour.
    """

    def __init__(self, *args: Any, read_prefix_cache: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.read_prefix_cache = read_prefix_cache
        self.prompt_tokens = self.cached_tokens = 0
        self._contexts: dict[tuple[int, ...], int] = {}
        self._reads: PrefixReads | None = None
        self._generated = False

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
        if self.read_prefix_cache:
            if self._generated:
                # What generations left in the cache is not in the record of what was sent.
                self.model.reset_prefix_cache()
                self._reads, self._generated = None, False
            if self._reads is None:
                self._reads = PrefixReads(self.model.llm_engine.vllm_config.cache_config.block_size)
            allowed = self._reads.allowed(ordered, [self._contexts.get(tuple(tokens), 0) for tokens in ordered])
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
                )
                for readable in allowed
            ],
            use_tqdm=self.batch_size == "auto",
            lora_request=self.lora_request,
        )
        self.prompt_tokens += sum(map(len, ordered))
        self.cached_tokens += sum(output.num_cached_tokens or 0 for output in outputs)
        found = dict(zip(order, outputs, strict=True))
        return [found[position] for position in range(len(requests))]
