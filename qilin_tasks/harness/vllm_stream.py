"""vLLM keeps its whole batch, and each answer is on disk when it is finished: the engine's steps are listened to."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from qilin_tasks.harness.stored import StoredLM
from qilin_tasks.harness.usage import Usage, of_engine

#: Finished answers are written together at least this often: a crash loses what finished within this time.
SECONDS_BETWEEN_WRITES = 1.0


def can_stream(model: Any) -> bool:
    """Whether this is the harness's vLLM backend in one process, with an engine that is stepped from here.

    Its multimodal backend generates by another method; there, chunks are kept.
    """
    engine = getattr(getattr(model, "model", None), "llm_engine", None)
    return (
        hasattr(engine, "step")
        and hasattr(model, "_model_generate")
        and not hasattr(model, "_multimodal_model_generate")
        and getattr(model, "data_parallel_size", 1) == 1
    )


def stream(lm: StoredLM) -> None:
    """Make the wrapped vLLM backend write each generation as it finishes, and reuse what is there.

    All generations of a task go to the engine at once; chunks are not needed (and would let the batch run empty at the
    end of each). Log-likelihoods stay in chunks. Tokens are counted as the engine has them.
    """
    backend, engine = lm.model, lm.model.model.llm_engine
    lm.unchunked = frozenset({"generate_until"})
    original: Callable[..., Sequence[Any]] = backend._model_generate
    step: Callable[..., Sequence[Any]] = engine.step
    waiting: dict[tuple[int, ...], list[str]] = defaultdict(list)
    finished: list[tuple[str, str]] = []
    usage: dict[str, Usage] = {}
    lengths: dict[str, int] = {}
    tokenizer = getattr(backend, "tokenizer", None)
    written = [0.0, 0]

    def write() -> None:
        if finished and lm.store is not None:
            lm.store.put(finished, usage=usage)
            written[1] += len(finished)
            lm.share += sum(lengths[key] for key, _ in finished) / max(1, sum(lengths.values()))
            lm.progress(lm.reused + int(written[1]), lm.asked, lm.reused)
            finished.clear()
            usage.clear()
        written[0] = time.monotonic()

    def listening_step(*args: Any, **kwargs: Any) -> Sequence[Any]:
        outputs = step(*args, **kwargs)
        for output in outputs:
            keys = waiting.get(tuple(output.prompt_token_ids or ())) if output.finished else None
            if keys:
                finished.append((keys[0], output.outputs[0].text))
                if (tokens := of_engine(output, tokenizer=tokenizer)) is not None:
                    usage[keys[0]] = tokens
                keys.pop(0)
        if time.monotonic() - written[0] >= SECONDS_BETWEEN_WRITES:
            write()
            if waiting:
                # A chunk of log-likelihoods is finished first: nothing of it is kept yet.
                lm.check_stop()
        return outputs

    def generate(requests: Sequence[list[int]], generate: bool = False, sampling_params: Any = None) -> list[Any]:
        if not generate or not isinstance(sampling_params, list) or lm.store is None:
            outputs_of_all = list(original(requests, generate=generate, sampling_params=sampling_params))
            lm.report([tokens for output in outputs_of_all if (tokens := of_engine(output)) is not None])
            return outputs_of_all
        keys = _raw_keys(requests, sampling_params)
        known = lm.store.get(keys)
        missing = [i for i, key in enumerate(keys) if key not in known]
        waiting.clear()
        lengths.clear()
        for i in missing:
            waiting[tuple(requests[i])].append(keys[i])
        written[1] = len(known)
        lengths.update({keys[i]: len(requests[i]) for i in missing})
        outputs: dict[int, Any] = {}
        if missing:
            made = original(
                [requests[i] for i in missing], generate=True, sampling_params=[sampling_params[i] for i in missing]
            )
            outputs |= dict(zip(missing, made, strict=True))
            write()
            waiting.clear()
        return [
            outputs[i] if i in outputs else SimpleNamespace(outputs=[SimpleNamespace(text=known[key])])
            for i, key in enumerate(keys)
        ]

    backend._model_generate = generate
    engine.step = listening_step


def _raw_keys(requests: Sequence[list[int]], sampling_params: Sequence[Any]) -> list[str]:
    seen: dict[str, int] = defaultdict(int)
    keys = []
    for tokens, params in zip(requests, sampling_params, strict=True):
        key = hashlib.sha256(repr((tokens, params)).encode()).hexdigest()
        seen[key] += 1
        keys.append(f"raw:{key}#{seen[key]}")
    return keys
