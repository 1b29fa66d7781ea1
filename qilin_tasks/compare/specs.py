"""models.yaml and `--model backend:name` -> model specifications, checked before anything runs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from qilin_tasks.compare.secrets import names_a_secret, references, refuse_secrets
from qilin_tasks.errors import DataError, DependencyError, SettingError, unknown
from qilin_tasks.harness.backends import BACKENDS, check_weights, missing_packages, weights_folder
from qilin_tasks.harness.metadata import parse_settings
from qilin_tasks.harness.publishing import check_publishing
from qilin_tasks.results.cost import read_entry

#: What becomes of a prompt that a server's content filter refuses: the pair fails, or an empty answer is counted.
ON_REFUSAL = ("stop", "empty")
#: Arguments that say how a model is run, not what it answers: a comparison may go on after they changed.
OPERATIONAL = frozenset(
    {
        "num_concurrent", "max_retries", "timeout", "verify_certificate", "ca_cert_path", "auth_token", "header",
        "gpu_memory_utilization", "tensor_parallel_size", "data_parallel_size", "swap_space", "max_num_seqs",
        "max_num_batched_tokens", "device", "device_map_option", "batch_size", "max_batch_size", "parallelize",
    }
)  # fmt: skip
#: Where else results go besides the folder: the harness's own flags of these names.
LOGGERS = ("hf_hub_log_args", "wandb_args", "wandb_config_args")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_HEAD_BYTES = 1 << 20


@dataclass(frozen=True)
class ModelSpec:
    """One model of a comparison; `gpus` is what a job asks of a Ray cluster (None: one for local weights).

    `prices` (qilin_tasks.results.cost.Prices) turn tokens and hours into money.
    `on_refusal` (stop or empty; None: as the comparison says) is what a content filter's refusal becomes.
    `hf_hub_log_args`, `wandb_args` and `wandb_config_args` go to the harness's loggers, over those of the command.
    """

    name: str
    backend: str
    args: dict[str, Any]
    generation: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    batch_size: int | str = "auto"
    chat_template: bool | None = None
    system_instruction: str | None = None
    gpus: float | None = None
    on_refusal: str | None = None
    prices: dict[str, Any] = field(default_factory=dict)
    hf_hub_log_args: dict[str, Any] = field(default_factory=dict)
    wandb_args: dict[str, Any] = field(default_factory=dict)
    wandb_config_args: dict[str, Any] = field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        """What its answers depend on: stored responses are refused to any other."""
        args = {key: value for key, value in self.args.items() if key not in OPERATIONAL}
        identity: dict[str, Any] = {"backend": self.backend, "args": args}
        folder = self.weights()
        if folder is not None:
            identity["weights"] = folder_fingerprint(folder)
        return identity

    def weights(self) -> Path | None:
        """The local folder of the model's weights, if it is one."""
        return weights_folder(self.backend, self.args)


def with_loggers(spec: ModelSpec, given: Mapping[str, Mapping[str, Any]]) -> ModelSpec:
    """The model with what the command gives all models (LOGGERS) under its own."""
    return replace(
        spec,
        hf_hub_log_args={**given["hf_hub_log_args"], **spec.hf_hub_log_args},
        wandb_args={**given["wandb_args"], **spec.wandb_args},
        wandb_config_args={**given["wandb_config_args"], **spec.wandb_config_args},
    )


def folder_fingerprint(folder: Path) -> str:
    """A digest over names, sizes and first and last MiB of a model folder's files: independent of time and place."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        size = path.stat().st_size
        total.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            total.update(file.read(_HEAD_BYTES))
            if size > 2 * _HEAD_BYTES:
                file.seek(-_HEAD_BYTES, os.SEEK_END)
            total.update(file.read())
    return total.hexdigest()[:16]


def read_models(path: Path) -> list[ModelSpec]:
    """The models of a YAML file: a list of maps. Raises DataError or SettingError naming the entry and the way out."""
    if not path.is_file():
        raise DataError(f"models file {str(path)!r} does not exist")
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not YAML: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path}: a list of models is needed, each with name, backend and args")
    return [_spec(entry, where=f"{path}, model {number}") for number, entry in enumerate(entries, start=1)]


def _spec(entry: Any, *, where: str) -> ModelSpec:
    if not isinstance(entry, Mapping):
        raise DataError(f"{where}: {entry!r} is not a map with name, backend and args")
    names = [f.name for f in fields(ModelSpec)]
    for key in entry:
        if key not in names:
            raise unknown(f"{where}: setting", key, names)
    for key in ("name", "backend"):
        if not isinstance(entry.get(key), str):
            raise SettingError(f"{where}: {key} {entry.get(key)!r}: a text is needed")
    for key in ("args", "generation", "environment", *LOGGERS):
        if not isinstance(entry.get(key) or {}, Mapping):
            raise SettingError(f"{where}: {key} {entry[key]!r}: a map is needed")
    filled = {key: value for key, value in entry.items() if value is not None}
    environment = {key: str(value) for key, value in (entry.get("environment") or {}).items()}
    return ModelSpec(**{"args": {}, **filled, "environment": environment})


def shorthand(text: str) -> ModelSpec:
    """`vllm:Qwen/Qwen2.5-7B-Instruct` or `local-chat-completions:qwen,base_url=http://…,num_concurrent=8`."""
    backend, colon, rest = text.partition(":")
    if backend not in BACKENDS:
        raise unknown(f"--model {text!r}: backend", backend, BACKENDS)
    model, _, pairs = rest.partition(",")
    if not colon or not model:
        raise SettingError(f"--model {text!r}: write backend:name, for example vllm:Qwen/Qwen2.5-7B-Instruct")
    args = {BACKENDS[backend].argument: model, **parse_settings([pairs], flag=f"--model {text!r}")}
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", model.rstrip("/").rsplit("/", 1)[-1]).strip("-.")
    return ModelSpec(name=name or backend, backend=backend, args=args)


def check_models(specs: Sequence[ModelSpec]) -> None:
    """Raises on the first thing that would fail later: names, backends, packages, folders, keys, variables."""
    if not specs:
        raise SettingError("no models: give a models.yaml, or --model backend:name")
    names: dict[str, str] = {}
    for spec in specs:
        if not _NAME.fullmatch(spec.name):
            raise SettingError(
                f"model name {spec.name!r}: letters, digits and . _ + - only (it becomes a folder), at most 100"
            )
        if spec.name.lower() in names:
            raise SettingError(
                f"two models are called {spec.name!r}: their results would overwrite each other; give each a `name` of "
                "its own in models.yaml"
            )
        names[spec.name.lower()] = spec.name
        _check_model(spec)


def _check_model(spec: ModelSpec) -> None:
    where = f"model {spec.name!r}"
    if spec.backend not in BACKENDS:
        raise unknown(f"{where}: backend", spec.backend, BACKENDS)
    if spec.on_refusal not in (None, *ON_REFUSAL):
        raise unknown(f"{where}: on_refusal", spec.on_refusal, ON_REFUSAL)
    if spec.prices:
        read_entry(spec.prices, where=where)
    backend = BACKENDS[spec.backend]
    if not spec.args.get(backend.argument):
        raise SettingError(f"{where}: args need {backend.argument!r} with backend {spec.backend!r}")
    for package in missing_packages(spec.backend):
        wanted = f"'qilin-tasks[{backend.extra}]'" if backend.extra else package
        raise DependencyError(f"{where}: backend {spec.backend!r} needs the package {package!r}: pip install {wanted}")
    check_weights(spec.backend, spec.args, where=where)
    check_publishing(spec.hf_hub_log_args, spec.wandb_args, environment=spec.environment, where=where)
    for name in LOGGERS:
        refuse_secrets(getattr(spec, name), where=f"{where}, {name}")
    refuse_secrets(spec.args, where=where)
    refuse_secrets(spec.environment, where=f"{where}, environment")
    for name in spec.environment:
        if names_a_secret(name) and not references({name: spec.environment[name]}):
            raise SettingError(f"{where}: environment {name}: write ${{VARIABLE}}, never the key itself")
    missing = [
        name
        for name in references([spec.args, spec.environment, *(getattr(spec, logger) for logger in LOGGERS)])
        if name not in os.environ and name not in spec.environment
    ]
    if missing:
        raise SettingError(f"{where}: environment variable {missing[0]} is not set: export it first")
    if spec.backend.startswith("openai-") and not (
        os.environ.get("OPENAI_API_KEY") or "OPENAI_API_KEY" in spec.environment
    ):
        raise SettingError(f"{where}: backend {spec.backend!r} reads its key from OPENAI_API_KEY, which is not set")
