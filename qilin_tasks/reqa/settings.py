"""Settings of the `reqa_*` tasks, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.metrics.answer_batch import BertScoreSettings
from qilin_tasks.reqa.pools import Pool, load_pool
from qilin_tasks.settings import SWITCH, Settings
from qilin_tasks.sources.reqa import SETS, ReQASet, custom_set
from qilin_tasks.text.languages import LANGUAGES

#: Retrievers that merge runs: those of `run_file`, else BM25's and the dense one's.
FUSIONS = ("rrf", "weighted", "mrrank", "routing")
RETRIEVERS = ("bm25", "dense", *FUSIONS, "run")
DIRECTIONS = ("question", "sentence")
CONTEXTS = ("na", *RETRIEVERS, "oracle")
#: A set of the user's own, read from the setting `path`.
CUSTOM = "custom"


@dataclass(frozen=True)
class PoolSettings(Settings):
    """Which set, how its pool is read and searched; shared by every family.

    `path` and `language` belong to the set `custom`. `run_file` names one run or several (a list, or separated by
    commas), `fusion_weights` the weights of `weighted` in the same way, `ranker_file` a model of `qilin-tasks mrrank`.
    """

    set: str
    path: str | None
    language: str | None
    strict: str
    data_revision: str | None
    corpus_limit: int | None
    shuffle_seed: int
    dense_model: str
    dense_batch_size: int
    dense_device: str
    dense_query_prompt: str | None
    dense_document_prompt: str | None
    run_file: str | None
    ranker_file: str | None
    fusion_weights: str | None

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"set": (*SETS, CUSTOM), "strict": SWITCH}
    MINIMUM: ClassVar[Mapping[str, int]] = {"corpus_limit": 1, "dense_batch_size": 1}

    def __post_init__(self) -> None:
        if self.set == CUSTOM:
            if self.path is None or self.language is None:
                raise SettingError(
                    "set 'custom' needs path (a SQuAD-format file, or a folder in BEIR format) and language "
                    f"({', '.join(sorted(LANGUAGES))})"
                )
            if self.language not in LANGUAGES:
                raise unknown("language", self.language, LANGUAGES)
        elif self.path is not None or self.language is not None:
            raise SettingError(f"set {self.set!r} has its own place and language: path and language are for 'custom'")
        _ = self.weights

    @classmethod
    def _value(cls, name: str, kind: str, value: Any) -> Any:
        if name in ("run_file", "fusion_weights") and isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        return super()._value(name, kind, value)

    @property
    def source(self) -> ReQASet:
        """Where the set is and what language it has."""
        if self.set == CUSTOM:
            return custom_set(str(self.path), language=str(self.language))
        return SETS[self.set]

    @property
    def run_files(self) -> tuple[str, ...]:
        """The paths of `run_file`."""
        return tuple(part.strip() for part in (self.run_file or "").split(",") if part.strip())

    @property
    def weights(self) -> tuple[float, ...]:
        """The numbers of `fusion_weights`. Raises SettingError for what is none."""
        try:
            return tuple(float(part) for part in (self.fusion_weights or "").split(",") if part.strip())
        except ValueError:
            raise SettingError(f"fusion_weights {self.fusion_weights!r}: give numbers, as [0.3, 0.7]") from None

    def pool(self) -> Pool:
        """The pool of the set, built once in a process."""
        return load_pool(
            self.set,
            chosen=self.source,
            strict=self.strict == "on",
            revision=self.data_revision,
            limit=self.corpus_limit if self.source.beir else None,
            seed=self.shuffle_seed if self.source.beir else 0,
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
