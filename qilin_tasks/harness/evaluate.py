"""One task asked, scored and written by the harness; what its releases call differently is told apart here."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lm_eval
from lm_eval.loggers import EvaluationTracker
from lm_eval.utils import setup_logging

from qilin_tasks.errors import DataError
from qilin_tasks.files import UNFINISHED
from qilin_tasks.harness.publishing import losses

__all__ = ["Evaluation", "evaluate", "sample_size", "setup_logging"]


@dataclass
class Evaluation:
    """What the harness made of one task: `results` as its results file has them, `samples` of that task."""

    task: str
    results: dict[str, Any]
    samples: list[dict[str, Any]]
    tracker: Any
    folder: Path

    def save(self, *, source: str, name: str) -> None:
        """Write the harness's two files; the folder of the task appears whole. Raises DataError where it can't be."""
        general = self.tracker.general_config_tracker
        # In a repository of the hub each model has a folder of its name.
        inner = name if self.tracker.push_results_to_hub or self.tracker.push_samples_to_hub else "files"
        general.model_source, general.model_name, general.model_name_sanitized = source, name, inner
        with losses() as lost:
            self.tracker.save_results_aggregated(results=self.results, samples={self.task: self.samples})
            self.tracker.save_results_samples(task_name=self.task, samples=self.samples)
        unfinished = self.folder / f"{UNFINISHED}{self.task}"
        made = unfinished / inner
        # The tracker logs a failure to write and goes on.
        if len(list(made.glob("results_*.json"))) != 1 or len(list(made.glob("samples_*.jsonl"))) != 1:
            raise DataError(f"{made}: the harness could not write its files (disk full? see the log above)")
        if lost:
            raise DataError(
                f"{self.task}: the hub did not take the results: {'; '.join(lost)}; no answer is lost: the same "
                "command tries again, without --hf_hub_log_args it goes on without"
            )
        made.replace(self.folder / self.task)
        shutil.rmtree(unfinished, ignore_errors=True)


def evaluate(
    model: Any,
    task: str,
    *,
    manager: Any,
    folder: Path,
    chat: bool,
    arguments: Mapping[str, Any],
    hub: Mapping[str, Any],
    **options: Any,
) -> Evaluation:
    """Ask and score one task; `options` are `simple_evaluate`'s, `hub` is where saving pushes to besides.

    Raises what the task raises.
    """
    unfinished = folder / f"{UNFINISHED}{task}"
    shutil.rmtree(unfinished, ignore_errors=True)
    tracker = EvaluationTracker(output_path=str(unfinished), **hub)
    results: dict[str, Any] = lm_eval.simple_evaluate(
        model=model,
        model_args=dict(arguments),
        tasks=[task],
        task_manager=manager,
        apply_chat_template=chat,
        fewshot_as_multiturn=chat,
        log_samples=True,
        evaluation_tracker=tracker,
        confirm_run_unsafe_code=False,
        **options,
    )
    samples = results.pop("samples")[task]
    # lm-eval 0.4.12 counts the documents of its last metric, which may be one over a share of them.
    results["n-samples"][task]["effective"] = len({sample["doc_id"] for sample in samples})
    return Evaluation(task, results, samples, tracker, folder)


def sample_size(task: Any, limit: float | None) -> int | None:
    """The number of documents that `--limit` leaves: a share below 1, rounded up."""
    if limit is None:
        return None
    return math.ceil(len(task.eval_docs) * limit) if limit < 1 else int(limit)
