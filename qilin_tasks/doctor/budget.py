"""Whether the longest prompt and the answer fit the model's context; the harness would cut the prompt from the left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qilin_tasks.doctor.findings import Finding

# Tokens per character vary little within one task, so the longest prompts in characters are the candidates.
CANDIDATES = 64
DEFAULT_ANSWER = 256


@dataclass(frozen=True)
class Model:
    """What is known of the model: `count` gives a prompt's tokens, `length` the positions it has (None: not known)."""

    name: str
    count: Callable[[str], int]
    length: int | None
    exact: bool


#: Without a tokenizer: those that know Chinese take about a token a character or less, others up to three.
BY_CHARACTERS = Model("one token a character", len, None, exact=False)


def load_model(name: str) -> Model | Finding:
    """The model's tokenizer and length, or the finding that says why they can't be read. Loads no weights."""
    try:
        from transformers import AutoConfig, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name)
        config = AutoConfig.from_pretrained(name)
    except (ImportError, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        fix = "give a folder with the model, or a hub id that can be reached, or leave --model out for an estimate"
        return Finding("context", "fail", f"--model {name}: no tokenizer and configuration here ({reason})", fix)

    def count(prompt: str) -> int:
        if not tokenizer.chat_template:
            return len(tokenizer.encode(prompt))
        turn = [{"role": "user", "content": prompt}]
        chat = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        return max(len(tokenizer.encode(prompt)), len(tokenizer.encode(chat, add_special_tokens=False)))

    length = getattr(config.get_text_config(), "max_position_embeddings", None)
    return Model(name, count, length, exact=True)


def context(
    tasks: Mapping[str, Sequence[Any]], model: Model, *, max_model_len: int | None, max_gen_toks: int | None
) -> Finding:
    """The task that needs most (longest prompt plus answer) against `max_model_len`, else the model's own length.

    `tasks` holds the harness's requests of each task.
    """
    if max_model_len and model.length and max_model_len > model.length:
        detail = f"--max_model_len {max_model_len}, but {model.name} has {model.length} positions"
        return Finding("context", "fail", detail, f"--max_model_len {model.length} or less")
    needs = [
        (name, _longest_prompt(requests, model), _answer_tokens(requests, max_gen_toks))
        for name, requests in tasks.items()
    ]
    name, prompt, answer = max(needs, key=lambda need: need[1] + need[2])
    about = "" if model.exact else f" (estimated by {model.name})"
    detail = f"{name} needs most, {prompt} tokens of prompt + {answer} of answer = {prompt + answer}{about}"
    limit = max_model_len or model.length
    if limit is None:
        fix = "give --model PATH_OR_ID, --max_model_len N, or both"
        return Finding("context", "warn", f"{detail}; no limit to compare with", fix)
    if prompt + answer <= limit:
        return Finding("context", "ok", f"{detail}, of {limit}")
    fix = "raise max_model_len, or lower note_chars / context_chars (--metadata) or max_gen_toks (--gen_kwargs)"
    # An estimate that doesn't fit proves nothing yet.
    return Finding("context", "fail" if model.exact else "warn", f"{detail}, the limit is {limit}", fix)


def _longest_prompt(requests: Sequence[Any], model: Model) -> int:
    """Tokens of the longest prompt, together with the continuation where that is given (log-likelihoods)."""
    prompts = {"".join(part for part in request.args if isinstance(part, str)) for request in requests}
    longest = sorted(prompts, key=lambda prompt: (-len(prompt), prompt))
    return max(map(model.count, longest[:CANDIDATES]), default=0)


def _answer_tokens(requests: Sequence[Any], max_gen_toks: int | None) -> int:
    request = requests[0]
    if request.request_type != "generate_until":
        return 0
    given = request.args[1]
    return int(max_gen_toks or given.get("max_gen_toks") or given.get("max_tokens") or DEFAULT_ANSWER)
