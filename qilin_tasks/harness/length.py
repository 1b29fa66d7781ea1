"""Whether the prompts fit the model: the harness cuts a longer one from the left, with no more than a log line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from qilin_tasks.errors import DependencyError, SettingError
from qilin_tasks.hub_reach import reach_hub

logger = logging.getLogger(__name__)

LENGTH_ARGUMENTS = ("max_model_len", "max_length")
# Tokens per character vary little within one task, so the longest prompts in characters are the candidates.
CANDIDATES = 64
#: The harness's own, where a task says nothing.
DEFAULT_ANSWER = 256
WAYS_OUT = "raise max_model_len, or lower note_chars / context_chars (--metadata) or max_gen_toks (--gen_kwargs)"


@dataclass(frozen=True)
class Model:
    """What is known of the model: `count` gives a text's tokens, `length` the positions it has (None: not known).

    `chats` says whether its tokenizer has a chat template.
    """

    name: str
    count: Callable[[str], int]
    length: int | None
    exact: bool = True
    chats: bool = False


#: Without a tokenizer: those that know Chinese take about a token a character or less, others up to three.
BY_CHARACTERS = Model("one token a character", len, None, exact=False)


@lru_cache(maxsize=2)
def load_model(name: str, *, revision: str = "main", chat: bool = False) -> Model:
    """The model's tokenizer and length; no weights are loaded. Raises DependencyError where there is no tokenizer.

    With `chat`, a prompt counts as what the tokenizer's chat template makes of it, where that is more.
    """
    reach_hub(name)
    try:
        from transformers import AutoConfig, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (ImportError, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DependencyError(f"no tokenizer for {name!r} here ({reason})") from error
    try:
        config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False)
        length = getattr(config.get_text_config(), "max_position_embeddings", None)
    except (OSError, ValueError):
        length = None

    def count(text: str) -> int:
        tokens = len(tokenizer.encode(text))
        if not chat or not tokenizer.chat_template:
            return tokens
        turn = [{"role": "user", "content": text}]
        templated = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        return max(tokens, len(tokenizer.encode(templated, add_special_tokens=False)))

    return Model(name, count, length, chats=bool(tokenizer.chat_template))


def needed(instances: Sequence[Any], model: Model, *, max_gen_toks: int | None = None) -> tuple[int, int]:
    """Tokens of the longest prompt (with the continuation, where that is given), and those kept for the answer."""
    answers: dict[str, int] = {}
    for instance in instances:
        prompt = "".join(part for part in instance.args if isinstance(part, str))
        given = instance.args[1] if instance.request_type == "generate_until" else {}
        room = max_gen_toks or given.get("max_gen_toks") or given.get("max_tokens") or DEFAULT_ANSWER
        answers[prompt] = int(room) if given else 0
    longest = sorted(answers, key=lambda prompt: (-len(prompt), prompt))[:CANDIDATES]
    return max(((model.count(prompt), answers[prompt]) for prompt in longest), key=sum, default=(0, 0))


def check_prompts_fit(
    instances: Sequence[Any], *, metadata: Mapping[str, Any], task: str, way_out: str = WAYS_OUT
) -> None:
    """Raises SettingError where a prompt and its answer don't fit; does nothing where the model is not known here.

    The model is known when its tokenizer can be loaded from the model arguments, which the harness merges into
    `metadata` (`pretrained` or `tokenizer`).
    """
    name = metadata.get("tokenizer") or metadata.get("pretrained")
    if not name:
        return
    try:
        model = load_model(str(name), revision=str(metadata.get("revision") or "main"))
    except DependencyError as error:
        logger.warning("prompt lengths are not checked: %s", error)
        return
    limit = next((int(metadata[key]) for key in LENGTH_ARGUMENTS if metadata.get(key)), model.length)
    if limit is None:
        return
    prompt, answer = needed(instances, model)
    if prompt + answer > limit:
        raise SettingError(
            f"{task}: the longest prompt has {prompt} tokens and {answer} are kept for the answer, but the model holds "
            f"{limit}; the harness would cut the prompt from the left. {way_out[0].upper()}{way_out[1:]}"
        )
