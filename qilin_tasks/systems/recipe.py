"""How a system is trained: recipes as YAML, one entry a system and config, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any

import yaml

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.systems.system import INPUTS

RECIPES = ("ours", "paper")
TRAINING_CONFIGS = ("search_train", "recommendation_train")
CHOICES: Mapping[str, tuple[str, ...]] = {"optimizer": ("adamw", "lamb"), "scale": ("none", "root"), "input": INPUTS}
_LEAST = {"batch_size": 1, "negatives": 1, "max_length": 8, "epochs": 1, "warmup_steps": 0}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """`batch_size` counts requests, each with one clicked note and `negatives` others.

    The learning rate rises from `warmup_start` of itself over `warmup_steps` and stays. `scale` is what a bi-encoder's
    dot products are divided by before the softmax: nothing, or the root of the vectors' length.
    """

    optimizer: str
    learning_rate: float
    weight_decay: float
    warmup_steps: int
    warmup_start: float
    batch_size: int
    negatives: int
    max_length: int
    epochs: int
    scale: str
    input: str
    gradient_checkpointing: bool

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise unknown(name, value, choices)
        for name, least in _LEAST.items():
            if (number := getattr(self, name)) < least:
                raise SettingError(f"{name} {number}: choose a number from {least}")
        if not self.learning_rate > 0:
            raise SettingError(f"learning_rate {self.learning_rate}: choose a number above 0")

    def rate(self, step: int) -> float:
        """The share of the learning rate at a step, counted from 0: 1 after the warming up."""
        if step >= self.warmup_steps:
            return 1.0
        return self.warmup_start + (1 - self.warmup_start) * step / self.warmup_steps


def read_recipe(name: str) -> dict[str, Any]:
    """A recipe's file. SettingError for an unknown one."""
    if name not in RECIPES:
        raise unknown("--recipe", name, RECIPES)
    path = files("qilin_tasks.systems").joinpath("recipes").joinpath(f"{name}.yaml")
    whole: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return whole


def load_recipe(
    name: str, *, system: str, config: str, changes: Mapping[str, int | float | str | None]
) -> tuple[Recipe, list[str]]:
    """The recipe of a system on a config with changes (None: none) and, as lines, how it differs from what it is of.

    SettingError for an unknown recipe or config, and for values that can't be.
    """
    whole = read_recipe(name)
    if config not in TRAINING_CONFIGS:
        raise unknown("--config", config, TRAINING_CONFIGS)
    entries = whole["systems"][system]
    given = {key: value for key, value in changes.items() if value is not None}
    recipe = Recipe(**{**entries["all"], **entries.get(config, {}), **given})
    changed = [f"{key} is {value} here (asked for)" for key, value in given.items()]
    return recipe, [*whole["differs"], *changed]


def as_dict(recipe: Recipe) -> dict[str, int | float | str | bool]:
    """Every setting by name."""
    return {field.name: getattr(recipe, field.name) for field in fields(recipe)}
