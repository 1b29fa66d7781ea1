"""The harness's own command line in this process: our tasks and models in it, checks before any model is loaded."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qilin_tasks import tasks_folder
from qilin_tasks.errors import DependencyError, QilinTasksError, SettingError
from qilin_tasks.harness import backends, task_manager
from qilin_tasks.harness.location import find_harness
from qilin_tasks.harness.machine import describe_machine_once
from qilin_tasks.harness.metadata import parse_settings
from qilin_tasks.harness.publishing import check_publishing, losses

SUBCOMMANDS = ("run", "ls", "validate")


def run(arguments: Sequence[str]) -> int:
    """`lm_eval ARGUMENTS…`; 1 where results could not be saved. What the harness raises passes through.

    Raises SettingError, DataError or DependencyError, before a model is loaded, for tasks, settings, data and model
    folders that are not in order.
    """
    cli, setup_logging = _harness_cli()
    setup_logging()
    saved = sys.argv
    # lm-eval's parser reads sys.argv and puts its own sub-command `run` before two or more arguments, not before one.
    lone = len(arguments) == 1 and arguments[0] not in SUBCOMMANDS
    sys.argv = ["lm_eval", *(["run"] if lone else []), *_plain_metadata(arguments)]
    try:
        try:
            args = cli.parse_args()
        except ValueError as error:
            raise SettingError(str(error)) from error
        config = _config_file(args)
        _complete(args, config)
        _check_chat(args, config)
        _check_publishing(args, config)
        if args.command == "run":
            describe_machine_once()
        with _checks_first(args), losses() as lost:
            cli.execute(args)
    except OSError as error:
        # Of requests, or of aiohttp where several requests are sent at a time.
        if type(error).__name__ not in ("ConnectionError", "ClientConnectorError"):
            raise
        print(file=sys.stderr)  # Behind the harness's progress bar.
        raise DependencyError(
            f"nobody answers at the model's address ({error}): start the server, or correct base_url in --model_args, "
            "as in base_url=http://127.0.0.1:8000/v1/chat/completions"
        ) from error
    except (AttributeError, ImportError, TypeError) as error:
        # What a harness that has changed since fails with.
        note = find_harness().untested
        if not note or isinstance(error, QilinTasksError):
            raise
        raise DependencyError(f"{note} ({type(error).__name__}: {error})") from error
    finally:
        sys.argv = saved
    if lost:
        print(f"error: not saved: {'; '.join(lost)}", file=sys.stderr)
    return 1 if lost else 0


def _harness_cli() -> tuple[Any, Any]:
    harness = find_harness()
    try:
        # The two names that `lm_eval.__main__.cli_evaluate` is made of: between parsing and running is the place for a
        # second include path, which the command line has no words for.
        from lm_eval.__main__ import HarnessCLI, setup_logging
    except ImportError as error:
        raise DependencyError(
            f"lm-eval {harness.version} has another command line than the one known here ({error}); until qilin-tasks "
            "is updated, use: lm_eval --include_path $(qilin-tasks path) --batch_size auto …"
        ) from error
    from qilin_tasks.harness.registry import register

    register()
    return HarnessCLI(), setup_logging


def _plain_metadata(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--metadata` as one JSON object, which every release reads (0.4.12 and 0.5 nothing else)."""
    plain: list[str] = []
    given: list[str] = []
    inside = seen = False
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if flag == "--metadata":
            inside, seen = True, True
            given += [value] if equals else []
        elif inside and not argument.startswith("-"):
            given.append(argument)
        else:
            inside = False
            plain.append(argument)
    if not seen:
        return plain
    settings = parse_settings(given, flag="--metadata")
    # Before the rest: a list of values (`--tasks a b`) can't swallow it there, and the sub-command stays first.
    place = 1 if plain and plain[0] in SUBCOMMANDS else 0
    return [*plain[:place], "--metadata", json.dumps(settings, ensure_ascii=False, default=list), *plain[place:]]


def _complete(args: argparse.Namespace, config: Mapping[str, Any]) -> None:
    """Fill in what the user left open: our folders in `include_path`, and `batch_size` by the table of backends.

    A `--config` file counts as the user's word too. `--seed` reaches the backends that draw by a seed of their own.
    """
    if hasattr(args, "include_path"):
        theirs = args.include_path or config.get("include_path") or []
        users = [theirs] if isinstance(theirs, str) else list(theirs)
        task_manager.check_folders(users)
        args.include_path = [str(tasks_folder()), *users]
        args.users_folders = users
    if getattr(args, "command", None) != "run":
        return
    model = _model(args, config)
    model_args = args.model_args or config.get("model_args") or {}
    seed = (args.seed or [None])[0]
    seeded = model in backends.BACKENDS and backends.BACKENDS[model].seeded
    if seed is not None and seeded and isinstance(model_args, Mapping) and "seed" not in model_args:
        args.model_args = model_args = {**model_args, "seed": seed}
    if hasattr(args, "batch_size") or "batch_size" in config:
        return
    device = args.device or (model_args.get("device") if isinstance(model_args, Mapping) else None)
    size = backends.default_batch_size(model, device=device)
    if size is not None:
        args.batch_size = size
    elif model in backends.BACKENDS and backends.BACKENDS[model].batch_size == "auto":
        print(
            f"note: --model {model} on a CPU runs with the harness's --batch_size 1; `auto` would try 64 sequences of "
            "the model's full length first. Give --batch_size N to choose.",
            file=sys.stderr,
        )


def _check_chat(args: argparse.Namespace, config: Mapping[str, Any]) -> None:
    """Refuses a prompt as plain text for a backend that takes conversations only: it would stop at the first one."""
    if getattr(args, "command", None) != "run":
        return
    model = _model(args, config)
    chat = model in backends.BACKENDS and backends.BACKENDS[model].chat
    if chat and not (getattr(args, "apply_chat_template", None) or config.get("apply_chat_template")):
        raise SettingError(f"--model {model} takes conversations only: add --apply_chat_template")


def _check_publishing(args: argparse.Namespace, config: Mapping[str, Any]) -> None:
    given = [getattr(args, name, None) or config.get(name) or {} for name in ("hf_hub_log_args", "wandb_args")]
    # A configuration file may hold them as one text, which the harness reads.
    hub, wandb = (arguments if isinstance(arguments, Mapping) else {} for arguments in given)
    check_publishing(hub, wandb)


def _model(args: argparse.Namespace, config: Mapping[str, Any]) -> Any:
    """The backend that is asked for, on the command line before the file."""
    return args.model or config.get("model") or backends.DEFAULT


def _config_file(args: argparse.Namespace) -> Mapping[str, Any]:
    if not getattr(args, "config", None):
        return {}
    from lm_eval.config.evaluate_config import EvaluatorConfig

    try:
        config: Mapping[str, Any] = EvaluatorConfig.load_yaml_config(args.config)
    except (OSError, ValueError, TypeError) as error:
        raise SettingError(f"--config {args.config}: {error}") from error
    return config


@contextmanager
def _checks_first(args: argparse.Namespace) -> Iterator[None]:
    """While the harness runs, its tasks are found in our folders alone where that is enough, and loaded at once.

    The harness resolves the names before it loads the model, and reads the data after it.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig

    users = vars(args).pop("users_folders", [])
    given = dict(getattr(args, "metadata", None) or {})
    theirs = EvaluatorConfig.process_tasks

    def process_tasks(self: Any, metadata: Any = None) -> Any:
        backends.check_packages(self.model)
        backends.check_weights(self.model, self.model_args, where="--model_args")
        asked = self.tasks.split(",") if isinstance(self.tasks, str) else self.tasks
        names = [name.strip() for task in asked for name in task.split(",") if name.strip()]
        if any(name.endswith(".yaml") or Path(name).is_dir() for name in names):
            manager = theirs(self, metadata)
        else:
            manager = task_manager.task_manager(names, metadata=metadata or self.metadata, include_path=users)
            task_manager.check_settings(
                [match for name in names for match in manager.match_tasks([name])],
                manager,
                given,
                shots=self.num_fewshot,
            )
            self.tasks = list(dict.fromkeys(match for name in names for match in manager.match_tasks([name])))
        loaded = manager.load(self.tasks)
        manager.load = lambda specs, overrides=None: loaded
        return manager

    EvaluatorConfig.process_tasks = process_tasks
    try:
        yield
    finally:
        EvaluatorConfig.process_tasks = theirs
