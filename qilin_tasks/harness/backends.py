"""The harness's backends that our commands know, in one table: what names the model, what they need, how they run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, DependencyError
from qilin_tasks.hub_reach import reach_hub


@dataclass(frozen=True, kw_only=True)
class Backend:
    """One of `--model`'s values.

    `argument` names the model, `packages` are the modules that it imports and `extra` ours that brings them.
    `batch_size` is what it gets when none is asked for; None leaves the harness's default of 1, for servers take one
    conversation a request (concurrency is `num_concurrent`). `probes` marks those that find `auto` by running 64
    sequences of the model's full length: quick on an accelerator, hours and all the memory on a CPU. `local` backends
    hold the weights in this process; `chat` ones take conversations only. `seeded` ones draw answers by a `seed` among
    their arguments, whatever the harness's own seeds are.
    """

    argument: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    batch_size: str | None = None
    probes: bool = False
    local: bool = False
    chat: bool = False
    seeded: bool = False


_TORCH = ("torch", "transformers", "accelerate")
_API = ("aiohttp", "requests", "tenacity")
_OPENAI = (*_API, "tiktoken")
_VLLM = Backend(argument="pretrained", packages=("vllm",), extra="vllm", batch_size="auto", local=True, seeded=True)
_HF = Backend(argument="pretrained", packages=_TORCH, extra="hf", batch_size="auto", probes=True, local=True)

BASELINE = "qilin-baseline"
PREFIX_CACHED = "qilin-vllm"
DEFAULT = "hf"
BACKENDS: dict[str, Backend] = {
    "vllm": _VLLM,
    PREFIX_CACHED: _VLLM,
    "vllm-vlm": _VLLM,
    "sglang": Backend(argument="pretrained", packages=("sglang",), batch_size="auto", local=True),
    "trtllm": Backend(argument="pretrained", packages=("tensorrt_llm",), batch_size="auto", local=True),
    "hf": _HF,
    "hf-auto": _HF,
    "huggingface": _HF,
    "steered": _HF,
    "mamba_ssm": Backend(
        argument="pretrained", packages=(*_TORCH, "mamba_ssm"), batch_size="auto", probes=True, local=True
    ),
    # Refuses `auto`.
    "hf-multimodal": Backend(argument="pretrained", packages=_TORCH, extra="hf", local=True),
    "local-completions": Backend(argument="model", packages=_API, extra="api", seeded=True),
    "local-chat-completions": Backend(argument="model", packages=_API, extra="api", chat=True, seeded=True),
    "openai-completions": Backend(argument="model", packages=_OPENAI, extra="api", seeded=True),
    "openai-chat-completions": Backend(argument="model", packages=_OPENAI, extra="api", chat=True, seeded=True),
    BASELINE: Backend(argument="strategy"),
}


def missing_packages(name: str) -> list[str]:
    """The packages of a backend that can't be imported here."""
    return [package for package in BACKENDS[name].packages if importlib.util.find_spec(package) is None]


def check_packages(name: object) -> None:
    """Raises DependencyError where a backend that an extra of ours brings can't be imported."""
    backend = BACKENDS.get(str(name))
    if backend is not None and backend.extra and (missing := missing_packages(str(name))):
        raise DependencyError(f"--model {name} needs {', '.join(missing)}: pip install 'qilin-tasks[{backend.extra}]'")


def default_batch_size(name: str, *, device: str | None) -> str | None:
    """The batch size when none was asked for; None leaves the harness's default."""
    backend = BACKENDS.get(name)
    if backend is None or (backend.probes and not _on_accelerator(device)):
        return None
    return backend.batch_size


def _on_accelerator(device: str | None) -> bool:
    # Without --device the harness asks for cuda:0, and takes the CPU where there is none.
    device = str(device or "cuda")
    if not device.startswith("cuda"):
        return not device.startswith("cpu")
    try:
        import torch
    except ImportError:
        # The backend can't load either, and lm-eval says so better.
        return True
    return bool(torch.cuda.is_available())


def weights_folder(name: str, arguments: Mapping[str, Any]) -> Path | None:
    """The local folder that a model is loaded from; None for a hub id and for servers."""
    backend = BACKENDS.get(name)
    model = arguments.get(backend.argument) if backend is not None and backend.local else None
    if not isinstance(model, str) or not _is_path(model):
        return None
    return Path(model).expanduser()


def _is_path(name: str) -> bool:
    """Whether a model name means a folder: hub names have one slash at most, and no dot or tilde in front."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or os.sep == "\\" in name or Path(name).is_dir()


def check_weights(name: str, arguments: Mapping[str, Any], *, where: str) -> None:
    """Raises DataError where the folder of a model's weights is missing or none; for a hub id, asks the hub once."""
    folder = weights_folder(name, arguments)
    backend = BACKENDS.get(name)
    if folder is None and backend is not None and backend.local and isinstance(arguments.get(backend.argument), str):
        reach_hub(str(arguments[backend.argument]))
    if folder is not None and not folder.is_dir():
        raise DataError(f"{where}: the model folder {str(folder)!r} does not exist")
    if folder is not None and "gguf_file" not in arguments and not (folder / "config.json").is_file():
        raise DataError(f"{where}: {str(folder)!r} holds no config.json, so it is no model folder")
