"""What a prompt leaves open: some chat templates begin the reasoning, so that the output holds only its end."""

from __future__ import annotations

from qilin_tasks.parsing.answers import strip_reasoning

_TAIL = 64


def opening_tag(prompt: object) -> str:
    """The reasoning tag (`<think>`, `[THINK]`, …) that the prompt ends with, or "" where it leaves nothing open."""
    if not isinstance(prompt, str):
        return ""
    tail = prompt[-_TAIL:].rstrip()
    tag = tail[max(tail.rfind("<"), tail.rfind("[")) :]
    return tag if tag.endswith((">", "]")) and strip_reasoning(tag).unfinished else ""


def whole_response(prompt: object, response: object) -> object:
    """The response with the opening tag that the prompt already gave; anything but text stays as it is."""
    return opening_tag(prompt) + response if isinstance(response, str) else response
