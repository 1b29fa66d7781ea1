"""Outputs that no model should write, drawn by a seed: for tests and for `benchmarks/hostile_outputs.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

PIECES = (
    "[1]", "[2] > [1]", "> ", "1.", "【笔记1】", "［２］", "٣", "१", "①", "1️⃣", "```json", "```",
    "{\"ranking\": [", "[[[", "]]]", "}", "<think>", "</think>", "<|channel|>analysis<|message|>",
    "<|end|>", "◁think▷", "`<think>`", "[THINK]", "答案：", "是", "否", "苹果", "很甜。", "ไทย", "हिन्दी",
    "العربية", "עברית", "👨\u200d👩\u200d👧\u200d👦", "🇨🇳", "é", "\u200b", "\ufeff", "\u202e",
    "\u0000", "\u001b[31m", "\ud800", "\udfff", "\u2028", "\u000d\u000a", "\u0009", " ", "_", "#",
    "|", "| 1 | 2 |", "1e309", "-1", "99999999999999999999", "NaN", "null", "true", "\\boxed{2}",
    "$$", "<b>", "&amp;", "<script>alert(1)</script>", "’", "“", "…", "。", "1,2,3", "3-5 天", "一万五",
    "不", "没有",
)  # fmt: skip
LONG = 100_000


def _repeated(chance: random.Random) -> str:
    piece = chance.choice(PIECES)
    return piece * (LONG // max(len(piece), 1))


def _mixed(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 60)))


def _any_characters(chance: random.Random) -> str:
    return "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randrange(1, 200)))


def _nested(chance: random.Random) -> str:
    depth = chance.choice((3, 50, 5_000))
    opening, closing = chance.choice((("[", "]"), ("(", ")"), ('{"a":', "}"), ("<think>", "</think>")))
    return opening * depth + chance.choice(("1", "[2] > [1]", "")) + closing * chance.choice((depth, depth // 2, 0))


def _digits(chance: random.Random) -> str:
    return "".join(chance.choice("0123456789") for _ in range(chance.choice((1, 20, 5_000))))


KINDS: tuple[Callable[[random.Random], str | None], ...] = (
    lambda chance: None,
    lambda chance: chance.choice(("", " ", "\n\n", "\u3000", "\u200b")),
    _mixed,
    _mixed,
    _mixed,
    _any_characters,
    _nested,
    _digits,
)


def hostile_outputs(count: int, *, seed: int, long: int = 10) -> Iterator[str | None]:
    """`count` outputs, `long` of them of 100,000 characters, the same for the same seed."""
    chance = random.Random(seed)
    for number in range(count):
        yield _repeated(chance) if number < long else chance.choice(KINDS)(chance)
