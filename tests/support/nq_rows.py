"""Rows in the columns that Natural Questions has on the hub."""

from __future__ import annotations

from typing import Any


def example(key: str, *, html: str = "<P>", answers: int = 1, annotations: int = 1) -> dict[str, Any]:
    """A page `<H1> T </H1> <P> Ann <B> sings </B> . Bob reads . </P>` in the hub's columns."""
    page = [
        "<H1>",
        "T",
        "</H1>",
        html,
        "Ann",
        "<B>",
        "sings",
        "</B>",
        ".",
        "Bob",
        "reads",
        ".",
        html.replace("<", "</"),
    ]
    glued = {8, 11}  # the full stops touch what stands before them, tags apart
    tokens: dict[str, list[Any]] = {"token": [], "is_html": [], "start_byte": [], "end_byte": []}
    at = 0
    for number, token in enumerate(page):
        at += 0 if number in glued or token.startswith("</B") else 1
        tokens["token"].append(token)
        tokens["is_html"].append(token.startswith("<"))
        tokens["start_byte"].append(at)
        at += len(token)
        tokens["end_byte"].append(at)
    short = {"start_token": [9] * answers, "end_token": [10] * answers, "text": ["Bob"] * answers}
    return {
        "id": key,
        "document": {"title": f"Page {key}", "tokens": tokens},
        "question": {"text": f"who reads {key}"},
        "annotations": {
            "long_answer": [{"start_token": 3, "end_token": 13}] * annotations,
            "short_answers": [short] * annotations,
        },
    }
