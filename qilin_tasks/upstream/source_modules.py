"""The package's own modules as source text: what each defines at its top, and where it imports the rest from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qilin_tasks.errors import DataError

PACKAGE = "qilin_tasks"
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Import:
    """`from module import name as alias`; without `name` it is `import module as alias`."""

    module: str
    name: str | None
    alias: str

    @property
    def ours(self) -> bool:
        return self.module.split(".")[0] == PACKAGE


@dataclass(frozen=True)
class SourceModule:
    """One module: `definitions` by name in source order (several names may share a statement), `imports` by alias."""

    name: str
    text: str
    definitions: dict[str, Definition]
    imports: dict[str, Import]

    def source(self, node: ast.stmt) -> str:
        """The statement's own lines, with its decorators and the comment lines that stand right above it."""
        lines = self.text.splitlines()
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(item.lineno for item in decorators)]) - 1
        while first > 0 and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return "\n".join(lines[first : node.end_lineno])


@cache
def source_module(name: str) -> SourceModule:
    """The module of this package with that dotted name; DataError where there is none."""
    path = _file(name)
    if path is None:
        raise DataError(f"module {name!r}: this package has no such file; reinstall qilin-tasks")
    return read_source(_without_module_aliases(path.read_text(encoding="utf-8")), name=name)


def _without_module_aliases(text: str) -> str:
    """`scoring.score(…)` after `from qilin_tasks.dqa import scorer as scoring` becomes an imported `score(…)`."""
    for node in ast.parse(text).body:
        for item in imports_of(node) if isinstance(node, ast.ImportFrom) else ():
            target = f"{item.module}.{item.name}"
            if item.ours and _file(target) is not None and _file(item.module) != _file(target):
                used = re.findall(rf"(?<![\w.]){item.alias}\.(\w+)", text)
                text = re.sub(rf"(?<![\w.]){item.alias}\.(?=\w)", "", text)
                text += "".join(f"\nfrom {target} import {name}" for name in dict.fromkeys(used))
    return text


def _file(module: str) -> Path | None:
    """The file of a dotted name below this package, None where there is no such module."""
    path = Path(__file__).resolve().parents[1].joinpath(*module.split(".")[1:])
    found = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return found if found.is_file() else None


def read_source(text: str, *, name: str) -> SourceModule:
    """Parse a module's text; relative imports are not read (this package has none)."""
    definitions: dict[str, Definition] = {}
    imports: dict[str, Import] = {}
    for node in _top_level(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update({item.alias: item for item in imports_of(node)})
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            definitions[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                definitions.update({found.id: node for found in ast.walk(target) if isinstance(found, ast.Name)})
    return SourceModule(name, text, definitions, imports)


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, those under `if TYPE_CHECKING:` included."""
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from node.body
        else:
            yield node


def imports_of(node: ast.Import | ast.ImportFrom) -> list[Import]:
    """What an import statement binds."""
    if isinstance(node, ast.Import):
        return [Import(item.name, None, item.asname or item.name.split(".")[0]) for item in node.names]
    return [Import(node.module or "", item.name, item.asname or item.name) for item in node.names]


def names_in(node: ast.AST, *, annotations: bool) -> set[str]:
    """Names that are read in a statement; without `annotations` only those that are looked up when it runs."""
    found: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Name):
            found.add(current.id)
        for field, value in ast.iter_fields(current):
            if field in ("annotation", "returns") and not annotations:
                continue
            children = value if isinstance(value, list) else [value]
            pending += [child for child in children if isinstance(child, ast.AST)]
    return found
