"""`qilin-tasks run …`: lm-eval in this process, with our tasks, our models and a batch size that uses the hardware."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DependencyError

#: The batch size that each of the harness's backends gets when none is asked for. Where it says None, the harness's
#: default of 1 stands: servers take one conversation a request (concurrency is `num_concurrent`), and `hf-multimodal`
#: and the rest refuse `auto` or never look at it.
BATCH_SIZES: dict[str, str | None] = {
    "vllm": "auto",
    "qilin-vllm": "auto",
    "vllm-vlm": "auto",
    "sglang": "auto",
    "trtllm": "auto",
    "hf": "auto",
    "hf-auto": "auto",
    "huggingface": "auto",
    "steered": "auto",
    "mamba_ssm": "auto",
    "local-completions": None,
    "local-chat-completions": None,
    "openai-completions": None,
    "openai-chat-completions": None,
    "hf-multimodal": None,
    "dummy": None,
    "qilin-baseline": None,
}

#: These find `auto` by running 64 sequences of the model's full length: quick on an accelerator, hours and all the
#: memory on a CPU.
PROBES_THE_DEVICE = frozenset({"hf", "hf-auto", "huggingface", "steered", "mamba_ssm"})

DEFAULT_MODEL = "hf"
SUBCOMMANDS = ("run", "ls", "validate")
HELP = """\
qilin-tasks run ARGUMENTS… is `lm_eval ARGUMENTS…` with our task folders in its include path (yours stays), the model
`qilin-baseline`, and, where no --batch_size is given, --batch_size auto for the backends that gain by it. What follows
is lm-eval's own help.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's line to `--help`; its arguments are lm-eval's and go to `run_raw` as they are."""
    subparsers.add_parser(
        "run",
        add_help=False,
        help="lm_eval with our tasks and models, and --batch_size auto (arguments: lm_eval's)",
    )


def run_raw(arguments: Sequence[str]) -> int:
    """Run `lm_eval ARGUMENTS…`; exceptions of the harness pass through, as they do from lm_eval itself."""
    if list(arguments) in (["-h"], ["--help"]):
        print(HELP)
        arguments = ["run", "--help"]
    cli, setup_logging = _harness_cli()
    setup_logging()
    saved = sys.argv
    # lm-eval's parser reads sys.argv and puts its own sub-command `run` before two or more arguments, not before one.
    lone = len(arguments) == 1 and arguments[0] not in SUBCOMMANDS
    sys.argv = ["lm_eval", *(["run"] if lone else []), *arguments]
    try:
        args = cli.parse_args()
        complete(args)
        cli.execute(args)
    finally:
        sys.argv = saved
    return 0


def _harness_cli() -> tuple[Any, Any]:
    from qilin_tasks.harness.location import find_harness

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
    # Imported for what they register: what newer harness releases find through our entry points. The harness's own
    # models first, for it registers them only while its registry is empty.
    import lm_eval.models  # noqa: F401
    from lm_eval.api.registry import model_registry

    from qilin_tasks.harness import (
        baseline,  # noqa: F401
        components,  # noqa: F401
    )

    # By name only, for its module imports vLLM.
    if "qilin-vllm" not in model_registry:
        model_registry.register("qilin-vllm", target="qilin_tasks.harness.vllm_prefix:PrefixCachedVLLM")
    return HarnessCLI(), setup_logging


def complete(args: argparse.Namespace) -> None:
    """Fill in what the user left open: our folders in `include_path`, and `batch_size` by the table above.

    A `--config` file counts as the user's word too.
    """
    config = _config_file(args)
    if hasattr(args, "include_path"):
        theirs = args.include_path or config.get("include_path")
        args.include_path = include_path(theirs)
    if getattr(args, "command", None) != "run" or hasattr(args, "batch_size") or "batch_size" in config:
        return
    model = args.model or config.get("model") or DEFAULT_MODEL
    model_args = args.model_args or config.get("model_args") or {}
    device = args.device or (model_args.get("device") if isinstance(model_args, Mapping) else None)
    size = batch_size(model, device=device)
    if size is not None:
        args.batch_size = size


def _config_file(args: argparse.Namespace) -> Mapping[str, Any]:
    if not getattr(args, "config", None):
        return {}
    from lm_eval.config.evaluate_config import EvaluatorConfig

    config: Mapping[str, Any] = EvaluatorConfig.load_yaml_config(args.config)
    return config


def include_path(theirs: str | Sequence[str] | None) -> list[str] | None:
    """The folders that the harness scans besides its own: ours, then the user's, which may override ours.

    A folder of ours that is installed and current is left out: the harness would warn of every task in it.
    """
    from qilin_tasks.harness.install import CURRENT, survey
    from qilin_tasks.harness.location import find_harness

    ours = [copy.source for copy in survey(find_harness().tasks) if copy.source and copy.state not in CURRENT]
    users = [theirs] if isinstance(theirs, str) else list(theirs or ())
    for path in users:
        if not Path(path).is_dir():
            # The harness would scan nothing there and later say that the task isn't known.
            raise DependencyError(f"--include_path {path}: no such folder")
    return [*map(str, ours), *users] or None


def batch_size(model: str, *, device: str | None) -> str | None:
    """The batch size for a backend when none was asked for; None leaves the harness's default."""
    size = BATCH_SIZES.get(model)
    if size == "auto" and model in PROBES_THE_DEVICE and not _on_accelerator(device):
        print(
            f"note: --model {model} on a CPU runs with the harness's --batch_size 1; `auto` would try 64 sequences of "
            "the model's full length first. Give --batch_size N to choose.",
            file=sys.stderr,
        )
        return None
    return size


def _on_accelerator(device: str | None) -> bool:
    # Without --device the harness asks for cuda:0, and takes the CPU where there is none.
    device = str(device or "cuda")
    if device.startswith("cpu"):
        return False
    if not device.startswith("cuda"):
        return True
    try:
        import torch
    except ImportError:
        # The backend can't load either, and lm-eval says so better.
        return True
    return bool(torch.cuda.is_available())
