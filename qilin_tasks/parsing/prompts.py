"""What a prompt leaves open: some chat templates begin the reasoning, so that the output holds only its end."""

from __future__ import annotations

from qilin_tasks.parsing.marks import marks

_TAIL = 256


def opening_tag(prompt: object) -> str:
    """The mark of reasoning (`<think>`, `[THINK]`, …) that the prompt ends with, or "" where it leaves nothing open."""
    if not isinstance(prompt, str):
        return ""
    tail = prompt[-_TAIL:].rstrip()
    found = list(marks(tail))
    if not found or found[-1].kind != "opens" or found[-1].end != len(tail) or tail.endswith(("/>", "assistant")):
        return ""
    return tail[found[-1].start :]


def whole_response(prompt: object, response: object) -> object:
    """The response with the opening mark that the prompt already gave; anything but text stays as it is."""
    if not isinstance(response, str):
        return response
    tag = opening_tag(prompt)
    # Gemma's ends in a word, which the template's line break parts from the reasoning.
    return f"{tag}\n{response}" if tag[-1:].isalpha() else tag + response
