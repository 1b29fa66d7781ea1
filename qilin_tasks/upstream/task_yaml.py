"""Our YAML in upstream's form: ready documents instead of a loader, `utils` instead of this package."""

from __future__ import annotations

import re

from qilin_tasks.upstream.families import Folder, TaskFile

_CLASS = re.compile(r"^class: !function \S*\.(\w+)$", re.MULTILINE)
_LOADER = re.compile(r"^custom_dataset: .*\n", re.MULTILINE)
_BLOCK = r"(?:^#[^\n]*\n)*^{}:\n(?:^[ #][^\n]*\n)*"


def base_yaml(text: str, *, dataset: str) -> str:
    """A base file: its documents come from `dataset`; what made them (`dataset_kwargs`) is in the data set's card."""
    text = re.sub(_BLOCK.format("dataset_kwargs"), "", text, flags=re.MULTILINE)
    return f"dataset_path: {dataset}\n{_code(text)}"


def task_yaml(file: TaskFile, folder: Folder, *, tag: str) -> str:
    """A task's file: its documents by name, a tag, the version and what scoring reads."""
    text = re.sub(_BLOCK.format("metadata"), "", file.path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = text.replace(f"task: {file.name}\n", f"task: {file.name}\ntag: {tag}\ndataset_name: {file.name}\n", 1)
    defaults = {**(file.config.get("dataset_kwargs") or {}), **file.config["metadata"]}
    settings = [f"  {name}: {_scalar(defaults[name])}\n" for name in folder.settings if name in defaults]
    return f"{_code(text)}metadata:\n  version: {file.config['metadata']['version']}\n{''.join(settings)}"


def _code(text: str) -> str:
    return _CLASS.sub(r"class: !function utils.\1", _LOADER.sub("", text))


def _scalar(value: object) -> str:
    """`on` and `off` are booleans to YAML unless they are quoted."""
    return f'"{value}"' if value in ("on", "off") else str(value)
