"""What a model wrote -> the answer to score: without its reasoning, and empty where the reasoning never ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qilin_tasks.text.tokens import clean

# Marks of reasoning in generated text, as vLLM 0.32's reasoning parsers list them: <think> (DeepSeek, Qwen3, GLM, Olmo,
# ERNIE, Hunyuan with a suffix <think:…>), <seed:think>, <mm:think> (MiniMax), [THINK] (Mistral), <|START_THINKING|>
# (Cohere); <thinking>, <thought> and <reasoning> come from prompts and other servers (NousResearch/hermes-agent 4286,
# vectorize-io/hindsight 2195).
_TAG = re.compile(
    r"(?i:<(?P<close>/?)(?:[a-z]{1,16}:)?(?P<name>think|thinking|thought|reasoning)"
    r"(?::[\w-]{1,32})?(?:\s+[^<>=]{1,64}=[^<>]{0,256}|\s*/)?\s*>)"
    r"|\[(?P<close_mistral>/?)(?P<mistral>THINK)\]"
    r"|<\|(?:START|(?P<close_cohere>END))_(?P<cohere>THINKING)\|>"
)
# Hunyuan's template, and the prompts of R1-style training, wrap what follows the reasoning.
_ANSWER_WRAPPER = re.compile(r"\s*<answer>(?P<answer>.*?)(?:</answer>\s*)?\Z", re.DOTALL | re.IGNORECASE)

#: What stands for an answer that a server's content filter refused, where the user wants such prompts counted.
REFUSED_RATE = "refused_rate"
REFUSED = "⟦refused by the server's content filter⟧"


@dataclass(frozen=True)
class Answer:
    """The answer without reasoning and outer white space; "" and `unfinished` where the reasoning never ended."""

    text: str
    unfinished: bool


def strip_reasoning(text: str | None, *, opened: bool = False) -> Answer:
    """Remove closed reasoning blocks; a block that is never closed makes the answer empty. Never raises.

    `opened`: the prompt ended inside a block (its chat template wrote `<think>`). A closing tag without an opening one
    ends such a block too, so only what follows it counts. A block ends at the closing tag of its own name; opening tags
    inside it are part of the reasoning.
    """
    if text == REFUSED:
        return Answer(text="", unfinished=False)
    source = clean(text)
    kept: list[str] = []
    block = "any" if opened else None
    end = 0
    found = opened
    for tag in _TAG.finditer(source):
        name = (tag["name"] or tag["mistral"] or tag["cohere"]).lower()
        closing = bool(tag["close"] or tag["close_mistral"] or tag["close_cohere"])
        if block is None:
            found = True
            if closing:
                kept.clear()
            else:
                kept.append(source[end : tag.start()])
                block = None if tag[0].endswith("/>") else name
            end = tag.end()
        elif closing and block in (name, "any"):
            block = None
            end = tag.end()
    if block is not None:
        return Answer(text="", unfinished=True)
    kept.append(source[end:])
    answer = "".join(kept)
    wrapped = _ANSWER_WRAPPER.match(answer) if found else None
    return Answer(text=(wrapped["answer"] if wrapped else answer).strip(), unfinished=False)
