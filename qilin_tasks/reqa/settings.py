"""Settings of the `reqa_*` tasks, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from qilin_tasks.metrics.answer_batch import BertScoreSettings
from qilin_tasks.reqa.pools import Pool, load_pool
from qilin_tasks.settings import SWITCH, Settings
from qilin_tasks.sources.reqa import SETS

RETRIEVERS = ("bm25", "dense")
DIRECTIONS = ("question", "sentence")
CONTEXTS = ("na", "bm25", "dense", "oracle")


@dataclass(frozen=True)
class PoolSettings(Settings):
    """Which set, and how its pool is read; shared by every family."""

    set: str
    strict: str
    data_revision: str | None
    corpus_limit: int | None
    shuffle_seed: int
    dense_model: str
    dense_batch_size: int
    dense_device: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"set": tuple(SETS), "strict": SWITCH}
    MINIMUM: ClassVar[Mapping[str, int]] = {"corpus_limit": 1, "dense_batch_size": 1}

    def pool(self) -> Pool:
        """The pool of the set, built once in a process."""
        return load_pool(
            self.set,
            strict=self.strict == "on",
            revision=self.data_revision,
            limit=self.corpus_limit if SETS[self.set].beir else None,
            seed=self.shuffle_seed if SETS[self.set].beir else 0,
        )


@dataclass(frozen=True)
class CandidateSettings(PoolSettings):
    """Listwise and likelihood: `top_k` candidates of the first stage, each cut to `candidate_chars` in the prompt."""

    first_stage: str
    top_k: int
    candidate_chars: int

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"first_stage": RETRIEVERS, **PoolSettings.CHOICES}
    MINIMUM: ClassVar[Mapping[str, int]] = {"top_k": 2, "candidate_chars": 20, **PoolSettings.MINIMUM}


@dataclass(frozen=True)
class LikelihoodSettings(CandidateSettings):
    """`direction`: what is scored, the question given the sentence or the sentence given the question."""

    direction: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"direction": DIRECTIONS, **CandidateSettings.CHOICES}


@dataclass(frozen=True)
class GenerateSettings(PoolSettings):
    """`matcher`: how a written answer sentence finds the pool's sentences."""

    matcher: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"matcher": RETRIEVERS, **PoolSettings.CHOICES}


@dataclass(frozen=True)
class ReaderSettings(PoolSettings, BertScoreSettings):
    """Readers: `top_k` sentences of `context` in the prompt, each cut to `candidate_chars`."""

    context: str
    top_k: int
    candidate_chars: int
    meteor: str
    meteor_download: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "context": CONTEXTS,
        "meteor": SWITCH,
        "meteor_download": SWITCH,
        **PoolSettings.CHOICES,
        **BertScoreSettings.CHOICES,
    }
    MINIMUM: ClassVar[Mapping[str, int]] = {
        "top_k": 1,
        "candidate_chars": 20,
        **PoolSettings.MINIMUM,
        **BertScoreSettings.MINIMUM,
    }
