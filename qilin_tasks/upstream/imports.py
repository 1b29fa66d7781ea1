"""The import block of an assembled file, in the order that upstream's ruff configuration asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from qilin_tasks.upstream.source_modules import Import

FIRST_PARTY = "lm_eval"


def import_block(runtime: Iterable[Import], typing_only: Iterable[Import]) -> str:
    """`from __future__`, then imports by section; what only annotations name goes under `if TYPE_CHECKING:`."""
    needed, annotations = set(runtime), set(typing_only)
    annotations -= needed
    if annotations:
        needed.add(Import("typing", "TYPE_CHECKING", "TYPE_CHECKING"))
    blocks = ["from __future__ import annotations", *_sections(needed, indent="")]
    text = "\n\n".join(blocks)
    if annotations:
        text += "\n\n\nif TYPE_CHECKING:\n" + "\n\n".join(_sections(annotations, indent="    "))
    return text


def _sections(imports: Iterable[Import], *, indent: str) -> list[str]:
    chosen = sorted(imports, key=lambda item: (item.module, item.name or ""))
    sections = []
    for number in range(3):
        part = [item for item in chosen if _section(item.module) == number]
        lines = [indent + statement(item) for item in part if item.name is None]
        modules = dict.fromkeys(item.module for item in part if item.name is not None)
        for module in modules:
            names = sorted({_name(item) for item in part if item.module == module and item.name}, key=_by_kind)
            lines.append(f"{indent}from {module} import {', '.join(names)}")
        if lines:
            sections.append("\n".join(lines))
    return sections


def _section(module: str) -> int:
    root = module.split(".")[0]
    if root == FIRST_PARTY:
        return 2
    return 0 if root in sys.stdlib_module_names else 1


def _name(item: Import) -> str:
    return f"{item.name}" if item.alias == item.name else f"{item.name} as {item.alias}"


def _by_kind(name: str) -> tuple[int, str]:
    """isort's order by type: CONSTANTS, Classes, functions."""
    plain = name.split(" ")[0]
    return (0 if plain.isupper() and len(plain) > 1 else 1 if plain[:1].isupper() else 2), name


def statement(item: Import) -> str:
    """One import as a line of Python."""
    if item.name is None:
        return f"import {item.module}" + ("" if item.alias == item.module.split(".")[0] else f" as {item.alias}")
    return f"from {item.module} import {_name(item)}"
