"""How a judge is asked, whatever answers: prompts in, texts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Ask(Protocol):
    """`repeats` texts for each prompt, in order; None where the judge gave none (its server refused the prompt)."""

    def __call__(self, prompts: Sequence[str], *, repeats: int, longest: int) -> list[list[str | None]]: ...
