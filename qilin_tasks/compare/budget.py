"""A limit on what one call of `compare` may spend: money, tokens, hours. Nothing is asked once it is reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.harness.backends import BASELINE
from qilin_tasks.harness.metadata import parse_settings
from qilin_tasks.results.cost import Prices, read_entry

#: What a model's process looks for before it asks: the comparison writes it when all models together are at the limit.
STOP_FILE = ".stop"


@dataclass(frozen=True)
class Budget:
    """None: no limit of that kind."""

    money: float | None = None
    tokens: float | None = None
    hours: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in asdict(self).values())


@dataclass(frozen=True)
class Spending:
    """What a process asked for since it started; `counted` of its `answers` have their tokens in here."""

    prompt: int = 0
    generated: int = 0
    seconds: float = 0.0
    answers: int = 0
    counted: int = 0

    def as_dict(self) -> dict[str, float]:
        """For a status file."""
        return asdict(self)


def parse_budget(words: Sequence[str]) -> Budget:
    """`money=10 tokens=3e6 hours=2`, any of them. Raises SettingError for another name or no positive number."""
    limits = parse_settings(words, flag="--budget")
    for name, value in limits.items():
        if name not in Budget.__dataclass_fields__:
            raise unknown("--budget", name, Budget.__dataclass_fields__)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise SettingError(f"--budget {name}={value}: a number above 0 is needed")
    return Budget(**{name: float(value) for name, value in limits.items()})


def check_budget(budget: Budget, specs: Sequence[ModelSpec]) -> None:
    """Raises SettingError where money is limited and a model has no prices."""
    for spec in specs:
        if budget.money is not None and spec.backend != BASELINE and not spec.prices:
            raise SettingError(
                f"--budget money={budget.money:g}: model {spec.name!r} has no `prices:` in models.yaml, so what it "
                "costs can't be told"
            )


def prices_of(spec: ModelSpec) -> Prices:
    """The prices of a model; all 0 where it has none."""
    return read_entry(spec.prices, where=f"model {spec.name!r}") if spec.prices else Prices()


@dataclass(frozen=True)
class Limits:
    """What is left for one process: `until` is a time of the clock, `stop` the file that ends it too."""

    money: float | None
    tokens: float | None
    until: float | None
    stop: str
    prices: Prices

    @classmethod
    def left(
        cls,
        budget: Budget,
        spent: Sequence[tuple[Spending, Prices]],
        *,
        started: float,
        stop: Path,
        prices: Prices,
    ) -> Limits:
        """Of a budget, after what other processes of the same call spent since `started`."""
        money = sum(price.money(prompt=s.prompt, generated=s.generated, seconds=s.seconds) for s, price in spent)
        tokens = sum(s.prompt + s.generated for s, _ in spent)
        return cls(
            money=None if budget.money is None else budget.money - money,
            tokens=None if budget.tokens is None else budget.tokens - tokens,
            until=None if budget.hours is None else started + budget.hours * 3600,
            stop=str(stop),
            prices=prices,
        )

    @property
    def used_up(self) -> bool:
        """Whether nothing is left of it before anything is asked."""
        return self.reached(Spending())

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Limits:
        """From a job."""
        return cls(**{**entry, "prices": Prices(**entry["prices"])})

    def reached(self, spending: Spending, *, clock: Callable[[], float] = time.time) -> bool:
        """Whether nothing more may be asked.

        Raises SettingError where answers came without their tokens, and tokens are what is limited.
        """
        priced = self.money is not None and (self.prices.input > 0 or self.prices.output > 0)
        if (self.tokens is not None or priced) and spending.counted < spending.answers:
            raise SettingError(
                f"--budget: {spending.answers - spending.counted} of {spending.answers} answers came without a count "
                "of their tokens (no `usage` in the server's responses), so the limit can't be held; use hours"
            )
        money = self.prices.money(prompt=spending.prompt, generated=spending.generated, seconds=spending.seconds)
        return (
            (self.money is not None and money >= self.money)
            or (self.tokens is not None and spending.prompt + spending.generated >= self.tokens)
            or (self.until is not None and clock() >= self.until)
            or Path(self.stop).exists()
        )
