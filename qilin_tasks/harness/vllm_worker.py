"""What runs inside vLLM's worker: the output layer only over the prompt tokens whose log-probability is wanted.

vLLM's prompt log-probabilities run the output layer over every prompt token (`_get_prompt_logprobs_dict` of its model
runner), and a vocabulary of 262,144 makes that most of the work of a small model. There is no setting for a part of
the prompt (vLLM 0.32); `worker_extension_cls` is its documented way to add to a worker.
"""

from __future__ import annotations

from typing import Any

#: The key in `SamplingParams.extra_args`: tokens of the prompt before the first one that is scored.
SCORED_FROM = "qilin_scored_from"


class ScoredTail:
    """Mixed into vLLM's worker; `LLM.collective_rpc("qilin_score_tails")` switches it on."""

    model_runner: Any

    def qilin_score_tails(self) -> bool:
        """Whether this vLLM's runner could be told; where not, it goes on as it does by itself."""
        runner = self.model_runner
        needed = ("_get_prompt_logprobs_dict", "num_prompt_logprobs", "requests", "input_batch", "query_start_loc")
        if not all(hasattr(runner, name) for name in needed):
            return False
        original = runner._get_prompt_logprobs_dict

        def only_tails(hidden_states: Any, num_scheduled_tokens: dict[str, int]) -> Any:
            scheduled = dict(num_scheduled_tokens)
            starts, computed = runner.query_start_loc.np, {}
            for req_id in runner.num_prompt_logprobs:
                request = runner.requests[req_id]
                skipped = _skipped(request)
                if req_id in scheduled and skipped > 0:
                    _blank(request, runner.num_prompt_logprobs[req_id])
                    computed[req_id] = (
                        request,
                        request.num_computed_tokens,
                        runner.input_batch.req_id_to_index[req_id],
                    )
                    # The original takes the rows from here on for the first that were computed in this step.
                    scheduled[req_id] -= skipped
                    request.num_computed_tokens += skipped
                    starts[computed[req_id][2]] += skipped
            try:
                return original(hidden_states, scheduled)
            finally:
                for request, tokens, row in computed.values():
                    starts[row] -= request.num_computed_tokens - tokens
                    request.num_computed_tokens = tokens

        runner._get_prompt_logprobs_dict = only_tails
        return True


def _skipped(request: Any) -> int:
    """Rows of this step whose logits give no wanted log-probability: token t's comes from the row of t - 1."""
    extra = getattr(request.sampling_params, "extra_args", None) or {}
    return int(extra.get(SCORED_FROM, 0)) - 1 - int(request.num_computed_tokens)


def _blank(request: Any, count: int) -> None:
    """The rows that are left out hold zeros, not whatever was in memory."""
    from vllm.v1.outputs import LogprobsTensors

    if request.in_progress_prompt_logprobs_cpu is None:
        tensors = LogprobsTensors.empty_cpu(len(request.prompt_token_ids) - 1, count + 1)
        for tensor in (tensors.logprob_token_ids, tensors.logprobs, tensors.selected_token_ranks):
            tensor.zero_()
        request.in_progress_prompt_logprobs_cpu = tensors
