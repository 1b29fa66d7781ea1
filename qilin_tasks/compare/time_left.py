"""How long a comparison still takes, from how fast its models answered so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qilin_tasks.compare.state import Pair
from qilin_tasks.harness.backends import BASELINE

if TYPE_CHECKING:
    from qilin_tasks.compare.view import Standing

#: Nothing is said before so much of the work is done.
ENOUGH = 0.1


def progress(how: Standing) -> float:
    """The share of a pair's work that this run has done: between that of the requests and that of their text.

    The longest go first, and whether length or number makes the time is not known: the geometric mean is off by the
    root of their ratio at most.
    """
    if how.over or how.state == "writing":
        return 1.0
    asked, missing = how.done - how.reused, how.total - how.reused
    return math.sqrt(asked / missing * min(how.share, 1.0)) if missing > 0 and asked > 0 else 0.0


def _work(pair: Pair, how: Standing) -> float:
    """What this run has to do for a pair, in units of its own: between requests and tokens, without what was there."""
    task = pair.task
    share = (how.total - how.reused) / how.total if how.total else 0.0
    return math.sqrt(task.requests * (task.prompt_tokens + task.answer_tokens + 1)) * share


def time_left(pairs: Sequence[Pair], standings: Sequence[Standing], *, jobs: int) -> float | None:
    """Seconds left with `jobs` models at a time; None before a tenth of the work is done.

    A model that has not begun counts as fast as the others on the average; loading and scoring are left out.
    """
    rows = [
        (pair.model.name, how, _work(pair, how), progress(how), float(how.spent.get("seconds", 0.0)))
        for pair, how in zip(pairs, standings, strict=True)
        if pair.model.backend != BASELINE and how.state not in ("reused", "stopped", "failed")
    ]
    begun = [(name, work * share, seconds) for name, _, work, share, seconds in rows if seconds > 0 and share > 0]
    done = sum(work for _, work, _ in begun)
    if done <= 0 or done < ENOUGH * sum(work for _, _, work, _, _ in rows):
        return None
    average = sum(seconds for _, _, seconds in begun) / done
    left: dict[str, float] = {}
    for name, how, work, share, seconds in rows:
        mine = [(its, took) for other, its, took in begun if other == name]
        rate = sum(took for _, took in mine) / sum(its for its, _ in mine) if mine else average
        own = seconds / share if seconds > 0 and share > 0 else rate * work
        left[name] = left.get(name, 0.0) + (0.0 if how.over else own * (1 - share))
    # Models under way go on; the others follow where a place is free.
    running = {name for name, *_ in begun}
    loads = [0.0] * max(1, jobs)
    for name in sorted(left, key=lambda name: name not in running):
        place = loads.index(min(loads))
        loads[place] += left[name]
    return max(loads)
