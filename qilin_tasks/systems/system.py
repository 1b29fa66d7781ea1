"""What a system is: it scores the candidates of requests, and says all that its scores depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.retrieval.encoders import BACKENDS
from qilin_tasks.sources.qilin import Note, QilinSource

#: How a cross-encoder sees a query and a note: as two segments, or as the official code's one text `query [SEP] note`.
INPUTS = ("pair", "string")


@dataclass(frozen=True)
class Exposed:
    """A request: `query` as the row has it, and what its user was shown; `notes` only where the system reads them."""

    row: int
    query: str
    candidates: tuple[int, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class SystemSettings:
    """What a system may need: a model (folder or hub name), or a run. `max_length` None is the system's own.

    `source`, `config` and `rows` tell which requests, for systems that read more of them than texts.
    """

    model: str | None = None
    run_file: Path | None = None
    max_length: int | None = None
    batch_size: int = 32
    device: str = "auto"
    input: str = "pair"
    backend: str = "mean-pooling"
    source: QilinSource | None = None
    config: str | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_length"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise SettingError(f"--{name.replace('_', '-')} {value}: choose a number from 1")
        if self.input not in INPUTS:
            raise unknown("--input", self.input, INPUTS)
        if self.backend not in BACKENDS:
            raise unknown("--backend", self.backend, BACKENDS)


class System(Protocol):
    """One row of SYSTEMS, made from the settings; making it loads and checks all that it needs."""

    reads_notes: ClassVar[bool]
    needs: ClassVar[str | None]

    def __init__(self, settings: SystemSettings) -> None: ...

    def recipe(self) -> Mapping[str, str | int]:
        """All that its scores depend on beside the data, for the signature."""

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        """A number for each candidate of each request, higher first; None for what it does not rank."""
