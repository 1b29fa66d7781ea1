"""One Python file out of a template and the package's own definitions, so that there is no second version of them.

A template is Python with markers. `# @take qilin_tasks.dqa.scorer: score` puts those definitions in its place, behind
all that they need and that is neither in the file yet nor defined by the template. Inside a class
`# @take qilin_tasks.harness.task.BatchScoredTask: apply_filters` takes methods, whose needs the template takes itself.
`# @rename DataError=ValueError` lets another name stand for one of ours, which is then not taken; `# @drop SETTINGS`
leaves members out of the classes that are taken.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field

from qilin_tasks.errors import DataError
from qilin_tasks.upstream.imports import import_block, statement
from qilin_tasks.upstream.source_modules import (
    Definition,
    Import,
    SourceModule,
    names_in,
    read_source,
    source_module,
)

_MARKER = re.compile(r"^(?P<indent> *)# @(?P<kind>take|rename|drop) (?P<rest>.+)$")
# None of these comes with lm-eval: the function that needs one imports it, so that loading a task does not.
# The harness executes a task's module before it is in `sys.modules`, where a dataclass looks its annotations up.
_FROZEN = re.compile(r"^@dataclass\(frozen=True\)\nclass (\w+):", re.MULTILINE)
OPTIONAL = frozenset({"rapidfuzz", "jieba", "bert_score", "torch", "transformers"})


_FIELD = re.compile(r"(?<!\{)\{(\w+)(?=[}!:])")


@dataclass
class _File:
    """The assembled file so far: the name that a definition of ours has in it, by module and name."""

    own: frozenset[str]
    renamed: dict[str, str]
    dropped: frozenset[str]
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    runtime: set[Import] = field(default_factory=set)
    typing_only: set[Import] = field(default_factory=set)

    def name_of(self, name: str, module: SourceModule) -> str | None:
        """What stands for a module's name in the file; None for a name that is not at the module's top."""
        if name not in module.definitions and name not in module.imports:
            return None
        if name in self.renamed:
            return self.renamed[name]
        if name in self.own or not _is_ours(name, module):
            return name
        return self.names.get(_origin(name, module))

    def take_imports(self, node: ast.AST, module: SourceModule, *, optional_inside: bool) -> list[Import]:
        """Note what a definition needs; the optional imports that it has to make itself are returned."""
        at_run_time, inside = names_in(node, annotations=False), []
        for name in sorted(names_in(node, annotations=True) & module.imports.keys()):
            found = module.imports[name]
            if found.ours:
                continue
            found = Import(found.module, found.name, self.renamed.get(name, found.alias))
            if name not in at_run_time:
                self.typing_only.add(found)
            elif found.module.split(".")[0] in OPTIONAL and optional_inside:
                inside.append(found)
            else:
                self.runtime.add(found)
        return inside


def assemble(template: str, *, values: Mapping[str, str] | None = None) -> str:
    """The text of the file; `@NAME@` in the template becomes `values["NAME"]`. DataError for what can't be taken."""
    for key, value in (values or {}).items():
        template = template.replace(f"@{key}@", value)
    tree, own = ast.parse(template), read_source(template, name="template")
    markers = [match for line in template.splitlines() if (match := _MARKER.match(line))]
    pairs = [pair.strip().split("=") for m in markers if m["kind"] == "rename" for pair in m["rest"].split(",")]
    dropped = {name.strip() for m in markers if m["kind"] == "drop" for name in m["rest"].split(",")}
    file = _File(frozenset(own.definitions), dict(pairs), frozenset(dropped))
    for node in own.definitions.values():
        file.take_imports(node, own, optional_inside=False)
    last_import = max(node.end_lineno or 0 for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    body = "\n".join(_line(line, file) for line in template.splitlines()[last_import:])
    body = re.sub(r"\n{4,}", "\n\n\n", body).strip("\n")
    doc = ast.get_docstring(tree, clean=False)
    return f'"""{doc}"""\n\n{import_block(file.runtime, file.typing_only)}\n\n\n{body}\n'


def _line(line: str, file: _File) -> str:
    marker = _MARKER.match(line)
    if marker is None:
        return line
    if marker["kind"] != "take":
        return ""
    where, _, names = marker["rest"].partition(":")
    wanted = [name.strip() for name in names.split(",")]
    if marker["indent"]:
        return "\n\n".join(_method(where.strip(), name, file, indent=marker["indent"]) for name in wanted)
    parts: list[tuple[Definition, str]] = []
    for name in wanted:
        _take(name, source_module(where.strip()), file, parts)
    return _joined(parts)


def _joined(parts: list[tuple[Definition, str]]) -> str:
    """Two blank lines around functions and classes; assignments follow one another."""
    text, last_plain = "", False
    for node, source in parts:
        plain = isinstance(node, (ast.Assign, ast.AnnAssign))
        text += ("\n" if plain and last_plain else "\n\n\n") + source
        last_plain = plain
    return text.strip("\n") + "\n\n"


def _origin(name: str, module: SourceModule) -> tuple[str, str]:
    """The module that defines what `module` calls `name`, and its name there."""
    while name not in module.definitions:
        found = module.imports[name]
        module, name = source_module(found.module), found.name or name
    return module.name, name


def _take(name: str, module: SourceModule, file: _File, parts: list[tuple[Definition, str]]) -> None:
    """Append the definition of `name` behind all that it needs, unless the file has it."""
    module_name, name = _origin(name, module)
    module = source_module(module_name)
    if (module_name, name) in file.names or name in file.renamed or name in file.own:
        return
    node = module.definitions[name]
    taken = {*file.names.values(), *file.own}
    for target, other in module.definitions.items():
        if other is node:
            file.names[module_name, target] = _free(target, module_name, taken)
    kept = _without(node, file.dropped)
    for needed in _in_order(names_in(kept, annotations=True), module):
        _take(needed, module, file, parts)
    inside = file.take_imports(kept, module, optional_inside=isinstance(node, ast.FunctionDef))
    source = _renamed(_cut(module.source(node), node, kept, inside), module, file)
    if isinstance(node, ast.ClassDef) and _FROZEN.search(source):
        source = _FROZEN.sub(r"class \1(NamedTuple):", source)
        file.runtime.add(Import("typing", "NamedTuple", "NamedTuple"))
        file.runtime.discard(Import("dataclasses", "dataclass", "dataclass"))
    parts.append((node, source))


def _free(name: str, module: str, taken: set[str]) -> str:
    """The name itself, or with its module's in front where another module's definition has it already."""
    if name not in taken:
        return name
    prefix, bare = module.rpartition(".")[2], name.lstrip("_")
    return "_" + (f"{prefix.upper()}_{bare}" if bare.isupper() else f"{prefix}_{bare}")


def _in_order(names: set[str], module: SourceModule) -> list[str]:
    """Names of ours among those that a module reads: imports first, then its own as it defines them."""
    imported = sorted(name for name in names if name in module.imports and module.imports[name].ours)
    return imported + [name for name in module.definitions if name in names]


def _without(node: Definition, dropped: frozenset[str]) -> Definition:
    """A class without the members that the template drops."""
    if not isinstance(node, ast.ClassDef):
        return node
    kept = [item for item in node.body if not (_bound(item) & dropped)]
    return ast.ClassDef(
        name=node.name, bases=node.bases, keywords=node.keywords, body=kept, decorator_list=node.decorator_list
    )


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}


def _cut(source: str, node: Definition, kept: Definition, inside: list[Import]) -> str:
    """The source without dropped members, and with the imports that a function makes itself behind its docstring."""
    lines: list[str | None] = list(source.splitlines())
    first = (node.end_lineno or node.lineno) - len(lines) + 1
    if isinstance(node, ast.ClassDef) and isinstance(kept, ast.ClassDef):
        for item in node.body:
            if item not in kept.body:
                start = min([item.lineno, *(d.lineno for d in getattr(item, "decorator_list", []))])
                lines[start - first : (item.end_lineno or start) - first + 1] = [None] * (
                    (item.end_lineno or start) - start + 1
                )
    _shorten(node, lines, first)
    if inside and isinstance(node, ast.FunctionDef):
        documented = ast.get_docstring(node) is not None
        at = (node.body[0].end_lineno or 0) - first + 1 if documented else node.body[0].lineno - first
        lines[at:at] = [" " * node.body[0].col_offset + statement(item) for item in inside] + [""]
    text = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() if isinstance(node, ast.ClassDef) else text


def _shorten(node: Definition, lines: list[str | None], first: int) -> None:
    """Docstrings of one paragraph: the rest of them speaks of the package."""
    for item in ast.walk(node):
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)) and (doc := ast.get_docstring(item, clean=False)):
            start, end = item.body[0].lineno - first, (item.body[0].end_lineno or 0) - first
            paragraph = doc.split("\n\n")[0].rstrip()
            if paragraph != doc and "\n" not in paragraph:
                lines[start] = f'{" " * item.body[0].col_offset}"""{paragraph}"""'
                lines[start + 1 : end + 1] = [None] * (end - start)


def _method(owner: str, name: str, file: _File, *, indent: str) -> str:
    module_name, _, class_name = owner.rpartition(".")
    module = source_module(module_name)
    members = {
        item.name: item for item in ast.walk(module.definitions[class_name]) if isinstance(item, ast.FunctionDef)
    }
    if name not in members:
        raise DataError(f"{owner} has no method {name!r}: choose from {', '.join(members)}")
    node = members[name]
    for needed in _in_order(names_in(node, annotations=True), module):
        known = needed in file.renamed or needed in file.own or _origin(needed, module) in file.names
        if not known:
            raise DataError(f"{owner}.{name} needs {needed!r}: the template has to take it before the class")
    file.take_imports(node, module, optional_inside=False)
    return textwrap.indent(_renamed(textwrap.dedent(module.source(node)), module, file), indent)


def _renamed(source: str, module: SourceModule, file: _File) -> str:
    """The source with our definitions by the names that they have in the file."""
    lines = source.splitlines(keepends=True)
    found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for previous, token in reversed(list(zip([None, *found], found, strict=False))):
        (row, start), end = token.start, token.end[1]
        if token.type == tokenize.NAME and (previous is None or previous.string != "."):
            new = file.name_of(token.string, module) or token.string
        elif token.type == tokenize.STRING and "f" in token.string.split(token.string[-1])[0].lower():
            # Before Python 3.12 an f-string is one token.
            new = _FIELD.sub(lambda match: f"{{{file.name_of(match[1], module) or match[1]}", token.string)
        else:
            continue
        if new != token.string:
            lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
    return "".join(lines)


def _is_ours(name: str, module: SourceModule) -> bool:
    return name in module.definitions or (name in module.imports and module.imports[name].ours)
