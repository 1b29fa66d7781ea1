"""Results to a Hugging Face repository and to Weights & Biases, by the harness's own loggers."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qilin_tasks.errors import DataError, DependencyError, SettingError, unknown

#: What `--hf_hub_log_args` takes: the parameters of the harness's EvaluationTracker that are the user's to choose.
HUB_ARGUMENTS = (
    "hub_results_org", "hub_repo_name", "details_repo_name", "results_repo_name", "push_results_to_hub",
    "push_samples_to_hub", "public_repo", "token", "leaderboard_url", "point_of_contact", "gated",
)  # fmt: skip
PUSHES = ("push_results_to_hub", "push_samples_to_hub")
#: What the harness says, and only says, when a file can't be written or pushed.
_NOT_SAVED = "Could not save"


def check_publishing(
    hub: Mapping[str, Any], wandb: Mapping[str, Any], *, environment: Mapping[str, str] | None = None, where: str = ""
) -> None:
    """Raises SettingError or DependencyError for what would fail only when a model has answered.

    `environment` are variables that the run will have besides those of this process.
    """
    before = f"{where}: " if where else ""
    for name in hub:
        if name not in HUB_ARGUMENTS:
            raise unknown(f"{before}hf_hub_log_args: argument", name, HUB_ARGUMENTS)
    for name in ("public_repo", "gated", *PUSHES):
        if not isinstance(hub.get(name, False), bool):
            raise SettingError(f"{before}hf_hub_log_args: {name} {hub[name]!r}: choose from false, true")
    if hub and not any(hub.get(name) for name in PUSHES):
        raise SettingError(f"{before}hf_hub_log_args push nothing: add {PUSHES[0]}=true or {PUSHES[1]}=true, or both")
    if hub and not (hub.get("token") or {**os.environ, **(environment or {})}.get("HF_TOKEN")):
        raise SettingError(
            f"{before}hf_hub_log_args need a token that may write: export HF_TOKEN (it is never written to a file)"
        )
    if wandb and importlib.util.find_spec("wandb") is None:
        raise DependencyError(f"{before}wandb_args need the package 'wandb': pip install 'wandb>=0.13.6'")


def hub_arguments(hub: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the harness's tracker, with the token of the environment where none is named."""
    return {"token": os.environ.get("HF_TOKEN"), **hub} if hub else {}


def log_to_wandb(
    results: Mapping[str, Any],
    samples: list[dict[str, Any]],
    *,
    task: str,
    name: str,
    arguments: Mapping[str, Any],
    config: Mapping[str, Any],
) -> None:
    """One run of Weights & Biases for a task's scores and samples, called `name` unless the arguments name it.

    Raises DataError where it can't be logged.
    """
    from lm_eval.loggers import WandbLogger

    try:
        logger = WandbLogger({"name": name, **arguments}, dict(config))
        code = 1
        try:
            logger.post_init(dict(results))
            logger.log_eval_result()
            logger.log_eval_samples({task: samples})
            code = 0
        finally:
            logger.run.finish(exit_code=code)
    except Exception as error:
        raise DataError(
            f"{task}: Weights & Biases did not take the results ({type(error).__name__}: {error}); no answer is lost: "
            "the same command tries again, without --wandb_args it goes on without"
        ) from error


@contextmanager
def losses() -> Iterator[list[str]]:
    """Collects what the harness could not write or push: it logs the failure and goes on."""
    lost: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text.startswith(_NOT_SAVED):
                lost.append(text)
            elif lost and record.levelno == logging.INFO and "Error(" in text:
                # The reason follows in a line of its own.
                lost[-1] += f" ({text})"

    handler = Collect(logging.INFO)
    logger = logging.getLogger("lm_eval.loggers.evaluation_tracker")
    logger.addHandler(handler)
    level = logger.level
    if not logger.isEnabledFor(logging.INFO):
        # The reason of a failure comes at this level.
        logger.setLevel(logging.INFO)
    try:
        yield lost
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
