"""Settings of the `qilin_search_*` and `qilin_recommendation_*` tasks, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qilin_tasks.errors import SettingError
from qilin_tasks.settings import Settings

RANKING_CONFIGS = ("search_test", "recommendation_test")
# A candidate needs its title at least, or the prompt shows nothing to rank by.
LEAST_CHARS = 20
# One patch of the smallest vision encoders.
LEAST_SIDE = 28


@dataclass(frozen=True)
class RankingSettings(Settings):
    """`rows`: the first rows of the config (None: all); `note_chars` of a candidate; `history`: clicked titles.

    `qrels`: a file of official labels to check the rows' clicks against. Lengths are code points.
    """

    config: str
    rows: int | None
    shuffle_seed: int
    note_chars: int
    query_chars: int
    history: int
    qrels: str | None

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"config": RANKING_CONFIGS}
    MINIMUM: ClassVar[Mapping[str, int]] = {
        "rows": 1,
        "note_chars": LEAST_CHARS,
        "query_chars": LEAST_CHARS,
        "history": 0,
    }


@dataclass(frozen=True)
class ListwiseSettings(RankingSettings):
    """`context_chars` of all candidates of a prompt; a list longer than `window` candidates is asked in windows."""

    context_chars: int
    window: int

    MINIMUM: ClassVar[Mapping[str, int]] = {**RankingSettings.MINIMUM, "window": 2, "context_chars": LEAST_CHARS}

    def __post_init__(self) -> None:
        if self.context_chars < self.window * LEAST_CHARS:
            raise SettingError(
                f"context_chars {self.context_chars!r}: {self.window} candidates (window) need at least "
                f"{self.window * LEAST_CHARS} characters, {LEAST_CHARS} each; raise context_chars or lower window"
            )


@dataclass(frozen=True)
class VisionSettings(ListwiseSettings):
    """`image_max_side`: cover images are scaled down to this many pixels on their longer side."""

    image_max_side: int

    MINIMUM: ClassVar[Mapping[str, int]] = {**ListwiseSettings.MINIMUM, "image_max_side": LEAST_SIDE}


@dataclass(frozen=True)
class GradedVisionSettings(RankingSettings):
    """`image_side`: the one picture of a prompt is a square of this many pixels; `history`: clicked covers in it."""

    image_side: int

    MINIMUM: ClassVar[Mapping[str, int]] = {**RankingSettings.MINIMUM, "image_side": LEAST_SIDE}
