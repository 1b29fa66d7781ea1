"""What a result's answers took: tokens, time, memory, and money by a user's prices; quality against cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.results.reader import TaskResult

PER = 1_000_000
#: How the counts of a tokenizer are marked: the others are the engine's or the server's own.
MARK = "~"


@dataclass(frozen=True)
class Prices:
    """`input` and `output` for a million tokens (reasoning is output), `hour` for an hour of asking; one currency."""

    input: float = 0.0
    output: float = 0.0
    hour: float = 0.0
    currency: str = ""

    def money(self, *, prompt: float, generated: float, seconds: float) -> float:
        """The price of so many tokens and seconds."""
        return (prompt * self.input + generated * self.output) / PER + seconds / 3600 * self.hour


@dataclass(frozen=True)
class Cost:
    """What the answers to one task took; `generated` holds the reasoning, which is None where nobody counted it.

    `counted` of the `answers` have their tokens in the sums. `seconds` are those of asking, `peak_bytes` is the device
    memory, None where it isn't known; `money` is None without prices.
    """

    prompt: int
    generated: int
    reasoning: int | None
    counted: int
    answers: int
    sources: tuple[str, ...]
    seconds: float
    peak_bytes: int | None
    money: float | None = None
    currency: str = ""

    @property
    def tokens_per_second(self) -> float | None:
        """Prompt and answer tokens together; None where either side is not known."""
        return (self.prompt + self.generated) / self.seconds if self.seconds > 0 and self.counted else None

    @property
    def estimated(self) -> bool:
        """Whether a tokenizer counted, or a part of the answers was not counted."""
        return "tokenizer" in self.sources or self.counted < self.answers


def cost_of(result: TaskResult) -> Cost | None:
    """What `compare` noted in the results file, by its prices; None in files of other runs."""
    noted = result.compare.get("cost")
    if not isinstance(noted, Mapping):
        return None
    values: dict[str, Any] = {
        field.name: noted.get(field.name) for field in fields(Cost) if field.name not in ("money", "currency")
    }
    values["sources"] = tuple(noted.get("sources", ()))
    cost = Cost(**values)
    if not result.compare.get("prices"):
        return cost
    prices = read_entry(result.compare["prices"], where=str(result.path))
    money = prices.money(prompt=cost.prompt, generated=cost.generated, seconds=cost.seconds)
    return replace(cost, money=money, currency=prices.currency)


def read_entry(entry: Any, *, where: str) -> Prices:
    """`{input: 0.4, output: 1.2, hour: 2, currency: EUR}` checked. Raises SettingError naming what is wrong."""
    names = [field.name for field in fields(Prices)]
    if not isinstance(entry, Mapping) or not entry:
        raise SettingError(f"{where}: prices {entry!r}: a map of {', '.join(names)} is needed")
    for key, value in entry.items():
        if key not in names:
            raise unknown(f"{where}: price", key, names)
        if key == "currency":
            if not isinstance(value, str):
                raise SettingError(f"{where}: currency {value!r}: a text is needed, for example USD")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise SettingError(f"{where}: price {key} {value!r}: a number from 0 on is needed")
    numbers = {key: float(entry[key]) for key in ("input", "output", "hour") if key in entry}
    return Prices(**numbers, currency=entry.get("currency", ""))


def read_prices(path: Path) -> dict[str, Prices]:
    """Prices by model: a map of names to prices, or a models.yaml with `prices` at its models.

    Raises DataError for a file that is none of the two, SettingError for a wrong price.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"prices {str(path)!r} can't be read: {error}") from error
    if isinstance(content, list):
        content = {entry["name"]: entry["prices"] for entry in content if isinstance(entry, dict) and "prices" in entry}
    if not isinstance(content, dict) or not content:
        raise DataError(f"{path}: a map of model names to prices is needed, or a models.yaml with `prices:`")
    return {str(name): read_entry(entry, where=f"{path}, {name}") for name, entry in content.items()}


def priced(results: Sequence[TaskResult], path: Path) -> list[TaskResult]:
    """The results with the prices of a file over their own. Raises SettingError for a model that no result has."""
    prices = read_prices(path)
    models = sorted({result.model for result in results})
    for name in prices:
        if name not in models:
            raise unknown(f"{path}: model", name, models)
    return [
        replace(result, compare={**result.compare, "prices": asdict(prices[result.model])})
        if result.model in prices
        else result
        for result in results
    ]


def frontier(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For (cost, quality), higher quality being better: whether no other is as cheap and as good, and better in one.

    Equal points are all on it.
    """
    return [
        not any(cost <= mine and quality >= good and (cost, quality) != (mine, good) for cost, quality in points)
        for mine, good in points
    ]


HEADS = ("model", "task", "prompt", "reasoning", "answer", "counted by", "time", "tokens/s", "memory", "cost")


def cells(cost: Cost | None) -> tuple[str, ...]:
    """A row of HEADS behind model and task; a dash for what isn't known."""
    if cost is None:
        return ("–",) * (len(HEADS) - 2)
    mark = MARK if cost.estimated else ""
    said = "+".join(cost.sources) or "–"
    if cost.counted < cost.answers:
        said += f" ({cost.counted:,} of {cost.answers:,})"
    rate, reasoning = cost.tokens_per_second, cost.reasoning
    return (
        f"{mark}{cost.prompt:,}" if cost.counted else "–",
        f"{mark}{reasoning:,}" if reasoning is not None else "–",
        f"{mark}{cost.generated - (reasoning or 0):,}" if cost.counted else "–",
        said,
        duration(cost.seconds),
        f"{rate:,.0f}" if rate is not None else "–",
        f"{cost.peak_bytes / 2**30:.1f} GiB" if cost.peak_bytes else "–",
        price(cost) or "–",
    )


def price(cost: Cost) -> str:
    """`0.123 USD`; "" without prices."""
    return f"{cost.money:.4g} {cost.currency}".rstrip() if cost.money is not None else ""


def duration(seconds: float) -> str:
    """`3.2 s`, `02:03`, `1:02:03`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes:02}:{whole % 60:02}"


def cost_table(results: Sequence[TaskResult]) -> str:
    """The costs of all results as text; "" where nothing was noted of any."""
    rows = [(result, cost) for result in results if (cost := cost_of(result)) is not None]
    if not rows:
        return ""
    lines = [HEADS, *((result.model, result.task, *cells(cost)) for result, cost in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
