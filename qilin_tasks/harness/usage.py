"""Tokens of an answer: as the server or the engine counts them, by the model's tokenizer where they say nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qilin_tasks.parsing.answers import REFUSED, strip_reasoning

SERVER, ENGINE, TOKENIZER = "server", "engine", "tokenizer"
#: Tokens of one request by (kind, arguments, response); None where they can't be counted.
Counter = Callable[[str, Sequence[Any], Any], "Usage | None"]


@dataclass(frozen=True)
class Usage:
    """Tokens of one request: `generated` holds the `reasoning` too (None: not known); `source` says who counted."""

    prompt: int
    generated: int
    reasoning: int | None
    source: str

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    def plus(self, other: Usage) -> Usage:
        """The sum of two of one source."""
        known = [part for part in (self.reasoning, other.reasoning) if part is not None]
        return Usage(
            self.prompt + other.prompt, self.generated + other.generated, sum(known) if known else None, self.source
        )


@dataclass(frozen=True)
class Spent:
    """What the answers of a store took: `counted` of them have their tokens in the sums, by `sources`.

    `reasoning` is None where no answer says how much of it was; `seconds` are those of asking, until the last answer
    that was stored; `peak_bytes` is the most device memory seen, None where it isn't known.
    """

    prompt: int
    generated: int
    reasoning: int | None
    counted: int
    sources: tuple[str, ...]
    seconds: float
    peak_bytes: int | None


class Tally:
    """What was asked for and stored since a store was opened; an answer or a count that is put again counts once."""

    def __init__(self) -> None:
        self.prompt = self.generated = 0
        self.seconds = 0.0
        self._answers: set[str] = set()
        self._usage: dict[str, Usage] = {}

    @property
    def answers(self) -> int:
        """How many answers, an engine's own copies of them left out."""
        return len(self._answers)

    @property
    def counted(self) -> int:
        """Of how many answers the tokens are in the sums."""
        return len(self._usage)

    def add(self, keys: Iterable[str], usage: Mapping[str, Usage]) -> None:
        """Answers and tokens that are on disk now."""
        self._answers.update(key for key in keys if not key.startswith("raw:"))
        for key, tokens in usage.items():
            before = self._usage.get(key)
            self.prompt += tokens.prompt - (before.prompt if before else 0)
            self.generated += tokens.generated - (before.generated if before else 0)
            self._usage[key] = tokens


def total(usages: Iterable[Usage], spans: Iterable[Mapping[str, Any]]) -> Spent:
    """The sums over answers, and over the runs that asked for them."""
    rows, runs = list(usages), list(spans)
    reasoning = [row.reasoning for row in rows if row.reasoning is not None]
    peaks = [int(run["peak_bytes"]) for run in runs if run.get("peak_bytes")]
    return Spent(
        prompt=sum(row.prompt for row in rows),
        generated=sum(row.generated for row in rows),
        reasoning=sum(reasoning) if reasoning else None,
        counted=len(rows),
        sources=tuple(sorted({row.source for row in rows})),
        seconds=sum(float(run["seconds"]) for run in runs),
        peak_bytes=max(peaks, default=None),
    )


def reported(output: Mapping[str, Any], *, choices: int) -> list[Usage]:
    """The `usage` of a response of OpenAI's API, for each choice (the first carries all); [] where it has none."""
    usage = output.get("usage")
    if not isinstance(usage, Mapping):
        return []
    prompt, generated = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt is None and generated is None:
        return []
    details = usage.get("completion_tokens_details")
    reasoning = _count(details.get("reasoning_tokens")) if isinstance(details, Mapping) else None
    whole = Usage(prompt or 0, generated or 0, reasoning, SERVER)
    return [whole, *[Usage(0, 0, None if reasoning is None else 0, SERVER)] * (choices - 1)]


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def of_engine(output: Any, *, tokenizer: Any = None) -> Usage | None:
    """vLLM's RequestOutput: its own prompt and token ids; reasoning by the tokenizer. None for anything else."""
    prompt, made = getattr(output, "prompt_token_ids", None), getattr(output, "outputs", None)
    if prompt is None or not made or not hasattr(made[0], "token_ids"):
        return None
    generated = sum(len(one.token_ids) for one in made)
    text = getattr(made[0], "text", "") if len(made) == 1 else ""
    return Usage(len(prompt), generated, _reasoning(text, generated, tokenizer), ENGINE)


def _reasoning(text: str, generated: int, tokenizer: Any) -> int | None:
    """Tokens before the answer: all that are not the answer's; 0 without reasoning, None where nothing can count."""
    answer = strip_reasoning(text)
    if answer.unfinished:
        return generated
    if len(answer.text) >= len(text.strip()) or "<" not in text:
        return 0
    return None if tokenizer is None else max(0, generated - _length(tokenizer, answer.text, special=False))


def counter(model: Any) -> Counter | None:
    """Counts by the tokenizer of one of the harness's models; None where it has none of transformers' kind."""
    tokenizer = getattr(model, "tokenizer", None)
    if not hasattr(tokenizer, "all_special_ids") or not callable(tokenizer):
        return None

    def count(kind: str, arguments: Sequence[Any], response: Any) -> Usage | None:
        texts = [part for part in arguments[:2] if isinstance(part, str)]
        if not isinstance(arguments[0], str):
            return None
        prompt = _length(tokenizer, "".join(texts), special=True)
        if kind != "generate_until" or response == REFUSED:
            return Usage(prompt, 0, 0, TOKENIZER)
        generated = _length(tokenizer, response, special=False)
        return Usage(prompt, generated, _reasoning(response, generated, tokenizer), TOKENIZER)

    return count


def _length(tokenizer: Any, text: str, *, special: bool) -> int:
    return len(tokenizer(text, add_special_tokens=special, return_attention_mask=False)["input_ids"])


def device_peak() -> int | None:
    """The most memory that this process's tensors had on its GPUs, or what is in use on them where engines run beside.

    None where torch was not loaded or sees no GPU.
    """
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    peak = 0
    for device in range(torch.cuda.device_count()):
        own = int(torch.cuda.max_memory_allocated(device))
        if not own:
            free, there = torch.cuda.mem_get_info(device)
            own = int(there - free)
        peak += own
    return peak
