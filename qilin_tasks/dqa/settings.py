"""Settings of `qilin_dqa_*`, checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.metrics.answer_batch import BertScoreSettings

#: `contexts` shows the notes of any run, whatever made it.
CONTEXTS = ("na", "bm25", "bert", "contexts", "oracle")
#: The retriever that must have made the run of a condition; a `contexts` run may come from any.
RETRIEVERS = {"bm25": "bm25", "bert": "dense", "contexts": None}
ANSWERS = ("all", "engaged")


@dataclass(frozen=True)
class DQASettings(BertScoreSettings):
    """`note_chars` (of a note) and `context_chars` (of all notes) are code points.

    `contexts` is a run of `qilin-tasks prepare` for the task's condition, or one for each: {"bm25": …, "bert": …}.
    """

    context: str
    contexts: str | None
    top_k: int
    note_chars: int
    context_chars: int
    answers: str

    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "context": CONTEXTS,
        "answers": ANSWERS,
        **BertScoreSettings.CHOICES,
    }
    MINIMUM: ClassVar[Mapping[str, int]] = {
        "top_k": 1,
        "note_chars": 20,
        "context_chars": 20,
        **BertScoreSettings.MINIMUM,
    }

    def __post_init__(self) -> None:
        if self.context == "contexts" and self.context_file is None:
            raise SettingError(
                "context 'contexts' shows the notes of a run: make one with `qilin-tasks prepare --config dqa` and "
                'pass --metadata \'{"contexts": "run.parquet"}\''
            )

    @classmethod
    def _value(cls, name: str, kind: str, value: Any) -> Any:
        if name == "contexts" and isinstance(value, Mapping):
            for condition in value:
                if condition not in RETRIEVERS:
                    raise unknown("contexts: condition", condition, RETRIEVERS)
            return json.dumps({str(condition): str(path) for condition, path in value.items()}, sort_keys=True)
        return super()._value(name, kind, value)

    @property
    def context_file(self) -> str | None:
        """The run that this condition shows; None for the release's own, and where none is shown."""
        if self.contexts is None or self.context not in RETRIEVERS:
            return None
        if not self.contexts.startswith("{"):
            return self.contexts
        found = json.loads(self.contexts).get(self.context)
        return None if found is None else str(found)

    def check_recipe(self) -> None:
        """Raises SettingError where another retriever made the run than the condition's name says."""
        from qilin_tasks.retrieval.run_file import read_recipe

        wanted, made = RETRIEVERS[self.context], str(read_recipe(str(self.context_file)).get("retriever"))
        if wanted is not None and made != wanted:
            raise SettingError(
                f"contexts {self.context_file!r}: the retriever {made!r} made this run, and the context "
                f"{self.context!r} shows one by {wanted!r}: give each condition its own, as "
                '{"bm25": "bm25.parquet", "bert": "bert.parquet"}, or use the task …_dqa_contexts'
            )

    @property
    def context_part(self) -> str:
        """The condition in the signature: with the retriever and the digest of the run where a file is shown."""
        if (path := self.context_file) is None:
            return self.context
        from qilin_tasks.retrieval.run_file import signed

        return f"{self.context}({signed(path)})"
