"""Whether the prompts fit the model: the harness cuts a longer one from the left, with no more than a log line."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from qilin_tasks.errors import SettingError

logger = logging.getLogger(__name__)

LENGTH_ARGUMENTS = ("max_model_len", "max_length")
# Tokens per character vary little within one task, so the longest prompts in characters are the candidates.
CANDIDATES = 64


def check_prompts_fit(instances: Sequence[Any], *, metadata: Mapping[str, Any], task: str) -> None:
    """Raises SettingError where a prompt and its answer don't fit; does nothing where the model is not known here.

    The model is known when its tokenizer can be loaded from the model arguments, which the harness merges into
    `metadata` (`pretrained` or `tokenizer`).
    """
    name = metadata.get("tokenizer") or metadata.get("pretrained")
    loaded = _tokenizer_and_length(str(name), str(metadata.get("revision") or "main")) if name else None
    if loaded is None:
        return
    tokenizer, model_length = loaded
    limit = next((int(metadata[key]) for key in LENGTH_ARGUMENTS if metadata.get(key)), model_length)
    if limit is None:
        return
    longest = sorted(instances, key=lambda instance: -sum(len(part) for part in instance.args if isinstance(part, str)))
    worst, needed = 0, 0
    for instance in longest[:CANDIDATES]:
        texts = [part for part in instance.args if isinstance(part, str)]
        room = 0
        if instance.request_type == "generate_until":
            room = int(instance.args[1].get("max_gen_toks") or instance.args[1].get("max_tokens") or 256)
        tokens = sum(len(tokenizer.encode(text)) for text in texts)
        if tokens + room > worst + needed:
            worst, needed = tokens, room
    if worst + needed > limit:
        raise SettingError(
            f"{task}: the longest prompt has {worst} tokens and {needed} are kept for the answer, but the model holds "
            f"{limit}; the harness would cut the prompt from the left. Raise max_model_len, or lower note_chars / "
            "context_chars (--metadata) or max_gen_toks (--gen_kwargs)"
        )


@lru_cache(maxsize=2)
def _tokenizer_and_length(name: str, revision: str) -> tuple[Any, int | None] | None:
    try:
        from transformers import AutoConfig, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (ImportError, OSError, ValueError) as error:
        logger.warning("prompt lengths are not checked: no tokenizer for %r here (%s)", name, str(error).split("\n")[0])
        return None
    try:
        config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (OSError, ValueError):
        return tokenizer, None
    return tokenizer, getattr(config.get_text_config(), "max_position_embeddings", None)
