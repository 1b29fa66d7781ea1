"""The encoder of BERTScore before its weights are loaded: packages, files, layer, limit and device, checked early."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DependencyError, SettingError
from qilin_tasks.hub_reach import reach_hub

_INSTALL = "pip install 'qilin-tasks[bertscore]', or --metadata bertscore=off"
# Encoders that state no limit (relative positions) would take any length and any amount of memory.
_DEFAULT_LIMIT = 512
_WEIGHTS, _WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"


def check_encoder(*, model: str, layer: int, device: str, max_tokens: int | None) -> None:
    """Everything that can fail before generation, without loading weights: packages, files (fetched now), settings.

    Raises DependencyError where a package, the model or its safetensors can't be had, SettingError for a bad setting.
    """
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise DependencyError(f"BERTScore needs the package {' and '.join(missing)}: {_INSTALL}")
    resolve_device(device)
    config = load_config(model, layer=layer)
    token_limit(load_tokenizer(model), config, max_tokens)
    for path in weight_files(model):
        _check_safetensors(path, model)


def resolve_device(device: str) -> str:
    """`auto` is cuda where there is one, else cpu; SettingError for a device that this torch doesn't have."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError, ValueError):
        kind = "unknown"
    if kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()):
        return device
    if kind == "mps" and torch.backends.mps.is_available():
        return device
    raise SettingError(f"BERTScore device {device!r}: not available here; choose from auto, cpu, cuda, cuda:N, mps")


def from_hub(what: str, model: str, class_name: str, **options: Any) -> Any:
    import transformers

    reach_hub(model)
    try:
        return getattr(transformers, class_name).from_pretrained(model, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise not_loadable(what, model, error) from error


def not_loadable(what: str, model: str, error: Exception) -> DependencyError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return DependencyError(
        f"BERTScore model {model!r}: its {what} can't be loaded ({reason}). Check the name, or the folder "
        f"(config.json, tokenizer files, {_WEIGHTS}); on a machine without access to the hub download it first "
        f"(hf download {model}) or give the folder's path; or --metadata bertscore=off"
    )


def load_config(model: str, *, layer: int) -> Any:
    """The model's configuration with `layer` layers: those above it are neither loaded nor computed.

    Raises SettingError for a layer that the model doesn't have, DependencyError where there is no such model.
    """
    config = from_hub("configuration", model, "AutoConfig")
    layers = getattr(config, "num_hidden_layers", None)
    if not isinstance(layers, int):
        raise SettingError(f"BERTScore model {model!r}: a {config.model_type} has no single stack of layers")
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer <= layers:
        raise SettingError(f"BERTScore layer {layer!r}: {model!r} has layers 0 to {layers}")
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layer]
    config.num_hidden_layers = layer
    return config


def load_tokenizer(model: str) -> Any:
    """The model's tokenizer; DependencyError where its files are missing, for which transformers makes an empty one.

    As bert-score 0.3.13 with transformers 5 has it, byte-level tokenizers get no leading space (with transformers 4 its
    slow tokenizers added one).
    """
    tokenizer = from_hub("tokenizer", model, "AutoTokenizer")
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise not_loadable("tokenizer", model, ValueError("its vocabulary is missing"))
    return tokenizer


def token_limit(tokenizer: Any, config: Any, max_tokens: int | None) -> int:
    """Tokens of one text with special tokens: what tokenizer and position table both take, and at most `max_tokens`."""
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < 1_000_000 else []
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa counts positions from padding_idx + 1.
        offset = (config.pad_token_id or 0) + 1 if "roberta" in config.model_type else 0
        limits.append(positions - offset)
    limit = min(limits, default=_DEFAULT_LIMIT)
    if max_tokens is None:
        return int(limit)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or not 3 <= max_tokens <= limit:
        raise SettingError(f"BERTScore max_tokens {max_tokens!r}: choose from 3 to {limit}, the encoder's limit")
    return max_tokens


def weight_files(model: str) -> list[Path]:
    """The model's safetensors, downloaded if need be; DependencyError where it has none."""
    folder = Path(model)
    if folder.is_dir():
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise DependencyError(
                f"BERTScore model {model!r}: the folder holds no *.safetensors (pickled weights are not read); "
                "save it again with model.save_pretrained(folder)"
            )
        return files
    return _download(model)


def _download(model: str) -> list[Path]:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    reach_hub(model)

    def fetch(name: str) -> Path:
        return Path(hf_hub_download(model, name))

    try:
        try:
            return [fetch(_WEIGHTS)]
        except LocalEntryNotFoundError:
            raise
        except EntryNotFoundError:
            index = json.loads(fetch(_WEIGHTS_INDEX).read_text(encoding="utf-8"))
            return [fetch(name) for name in sorted(set(index["weight_map"].values()))]
    except (OSError, ValueError, EntryNotFoundError, HfHubHTTPError) as error:
        raise not_loadable(f"weights ({_WEIGHTS})", model, error) from error


def _check_safetensors(path: Path, model: str) -> None:
    """The header against the file's length: a download that broke off shows here, not after hours of generation."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise not_loadable(f"weights ({path.name})", model, error) from error


@lru_cache(maxsize=8)
def model_name(model: str) -> str:
    """For signatures: a hub id as it is; a folder as its name and the first digits of its weights' SHA-256."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for path in weight_files(model):
        with path.open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    return f"{folder.resolve().name}@{digest.hexdigest()[:8]}"
