"""Answers that are there already, put through a task in a model's place: scored and written as a model's are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval.api.model import LM

from qilin_tasks.errors import SettingError
from qilin_tasks.family import Document
from qilin_tasks.harness.core import TaskCore
from qilin_tasks.harness.evaluate import Evaluation, evaluate, sample_size
from qilin_tasks.harness.registry import register
from qilin_tasks.harness.task_manager import check_settings, expand, task_manager
from qilin_tasks.signature import GIVEN, digest_all, signature, signature_parts

#: Parts of the signature that say how a model is asked: nobody asked this system so.
_ASKED = ("prompt", "gen", "repeats", "shots", "chat", "system")


class GivenAnswers(LM):  # type: ignore[misc]
    """A model whose answer to a document is the one in `answers`, by `doc_key`."""

    MULTIMODAL = True

    def __init__(self, answers: Mapping[int | str, str]) -> None:
        super().__init__()
        self.answers = answers

    @property
    def tokenizer_name(self) -> str:
        return "given"

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        counts = Counter((request.doc["doc_key"], request.repeats) for request in requests)
        if (most := max((count // repeats for (_, repeats), count in counts.items()), default=1)) > 1:
            raise SettingError(f"this task asks up to {most} times about a document; one answer can't stand for all")
        return [self.answers[request.doc["doc_key"]] for request in requests]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise SettingError("this task scores log-likelihoods, not answers: rankings go through score --run")

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        raise SettingError("this task scores log-likelihoods, not answers: rankings go through score --run")


@dataclass(frozen=True)
class AnsweredTask:
    """A task of ours that asks for one text a document; `documents` are the first `limit`, `all_documents` all."""

    name: str
    manager: Any
    limit: float | None
    documents: Sequence[Document]
    all_documents: Sequence[Document]


def open_task(
    name: str, *, metadata: Mapping[str, Any], include_path: Sequence[str] = (), limit: float | None = None
) -> AnsweredTask:
    """The task with its documents. Raises SettingError for a group, and for a task that no written answer fits."""
    register()
    manager = task_manager([name], metadata=metadata, include_path=include_path)
    if (members := expand([name], manager)) != [name]:
        raise SettingError(f"--task {name}: holds several tasks; choose one: {', '.join(members)}")
    check_settings([name], manager, metadata, shots=None)
    loaded = manager.load([name])
    # The harness loads the task again where it asks: from here.
    manager.load = lambda specs, overrides=None: loaded
    task = loaded["tasks"][name]
    core = getattr(task, "core", None)
    if not isinstance(core, TaskCore):
        raise SettingError(f"--task {name}: none of qilin-tasks, so what answers it isn't known")
    if core.asking.kind != "generate_until":
        raise SettingError(
            f"--task {name}: scores log-likelihoods, not answers: qilin-tasks score --config … --run … takes rankings"
        )
    documents = [dict(doc) for doc in task.eval_docs]
    return AnsweredTask(name, manager, limit, documents[: sample_size(task, limit)], list(documents))


def score_answers(
    task: AnsweredTask, answers: Mapping[int | str, str], *, name: str, source: str, file: Path, out: Path
) -> Evaluation:
    """Score and write: `out/<task>` appears whole, with a results and a samples file of the harness's own shape.

    `answers` has an entry for each of the task's documents. Raises whatever the metrics raise.
    """
    done = evaluate(
        GivenAnswers(answers),
        task.name,
        manager=task.manager,
        folder=out,
        chat=False,
        arguments={"answers": str(file), "name": name},
        hub={},
        limit=task.limit,
    )
    metadata = done.results["configs"][task.name]["metadata"]
    parts = {key: part for key, part in signature_parts(metadata["signature"]).items() if key not in _ASKED}
    family = parts.pop("family")
    asked = [doc["doc_key"] for doc in task.documents]
    metadata["signature"] = signature(family, {**parts, GIVEN: digest_all([key, answers[key]] for key in asked)})
    done.results["config"]["model"] = source
    done.save(source=source, name=name)
    return done
