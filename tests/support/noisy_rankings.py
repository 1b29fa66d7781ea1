"""Rankings in known forms between prose, years, prices, reasoning and fences."""

from __future__ import annotations

import random
from collections.abc import Iterator

FORMS = (
    lambda ids: " > ".join(f"[{i}]" for i in ids),
    lambda ids: " > ".join(f"({i})" for i in ids),
    lambda ids: "→".join(f"【{i}】" for i in ids),
    lambda ids: "[" + ", ".join(map(str, ids)) + "]",
    lambda ids: "\n".join(f"{place}. [{i}]" for place, i in enumerate(ids, start=1)),
)
BEFORE = (
    "",
    "排序结果：",
    "Here is the ranking:\n",
    "我比较了20篇笔记。\n",
    "<think>先看[1]和[2]，大概2023年。</think>\n",
    "**答案**\n",
)
AFTER = ("", "\n", "\n\n以上是我的排序，共3步。", "\n\nThe first one mentions 2024 and costs 15 yuan.", "\n```", "。")


def noisy_rankings(*, seed: int) -> Iterator[tuple[str, list[int]]]:
    """A text and the ranking in it, a permutation of 1..n for n from 3 to 20, without end."""
    chance = random.Random(seed)
    while True:
        n = chance.randrange(3, 21)
        ids = chance.sample(range(1, n + 1), n)
        yield chance.choice(BEFORE) + chance.choice(FORMS)(ids) + chance.choice(AFTER), ids
