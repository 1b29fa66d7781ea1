"""Imports of the package go down its layers only, and nothing heavy is imported with it."""

from __future__ import annotations

import ast
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A module may import from its own folder and from every row above its own; folders in one row don't import each other.
LAYERS = (
    {"errors", "__init__"},
    {"files", "hub_reach", "signature"},
    {"settings", "strategy"},
    {"text", "sources"},
    {"parsing"},
    {"metrics", "retrieval"},
    {"family"},
    {"answer_scorer", "ranking_scorer"},
    {"dqa", "ranking", "reqa"},
    # Over DQA's documents and metrics, with evidence of its own choosing.
    {"evidence", "own_data"},
    # Rankers without a language model: only commands know them.
    {"systems"},
    {"families", "repeats"},
    {"harness", "results"},
    {"compare"},
    {"judge", "validity"},
    {"export", "report", "doctor", "upstream"},
    {"commands"},
    {"cli"},
)
#: The only folder that knows lm-evaluation-harness.
HARNESS_IMPORTERS = {"harness"}
HEAVY = {
    "torch", "transformers", "vllm", "sentence_transformers", "matplotlib", "datasets", "bert_score", "ray", "faiss",
    "sklearn", "pythainlp", "nltk",
}  # fmt: skip
LOADED_BY_THE_HARNESS = {"datasets"}


def parsed(path: Path) -> ast.Module:
    """The module's tree. CPython 3.11's parser may lose count where another thread parses too: it is asked again."""
    text = path.read_text(encoding="utf-8")
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def imports(path: Path, *, package: Path, top_level: bool) -> Iterator[str]:
    """The full dotted names a module imports; with `top_level` only what runs when the module is imported."""
    parents = ("qilin_tasks", *path.relative_to(package).parts[:-1])
    pending: list[ast.AST] = [parsed(path)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = parents[: len(parents) - node.level + 1] if node.level else ()
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        if top_level and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))


def unit(path: Path, package: Path) -> str:
    """`metrics/rouge.py` and `metrics/__init__.py` belong to `metrics`, `cli.py` to `cli`."""
    relative = path.relative_to(package)
    return relative.parts[0].removesuffix(".py")


def layer_of(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer)


def modules(package: Path) -> list[Path]:
    """All of them but those that only the harness loads: the folders that go to upstream."""
    carried = tuple(package.glob("upstream/qilin*/*.py"))
    return sorted(path for path in package.rglob("*.py") if "_lm_eval_tasks" not in path.parts and path not in carried)


def imported_units(path: Path, package: Path) -> set[str]:
    names = [name.split(".") for name in imports(path, package=package, top_level=False)]
    return {parts[1] if len(parts) > 1 else "__init__" for parts in names if parts[0] == "qilin_tasks"}


@pytest.fixture(scope="module")
def package(repo: Path) -> Path:
    return repo / "qilin_tasks"


def test_every_module_has_a_layer(package: Path) -> None:
    known = set().union(*LAYERS)
    assert sorted({unit(path, package) for path in modules(package)} - known) == []


def test_imports_go_down(package: Path) -> None:
    wrong = [
        f"{path.relative_to(package)} imports {other}"
        for path in modules(package)
        for other in sorted(imported_units(path, package) - {unit(path, package)})
        if other in set().union(*LAYERS) and layer_of(other) >= layer_of(unit(path, package))
    ]
    assert wrong == []


def test_only_one_folder_imports_the_harness(package: Path) -> None:
    wrong = [
        str(path.relative_to(package))
        for path in modules(package)
        if any(name.split(".")[0] == "lm_eval" for name in imports(path, package=package, top_level=False))
        and unit(path, package) not in HARNESS_IMPORTERS
    ]
    assert wrong == []


def test_nothing_heavy_is_imported_at_the_top_of_a_module(package: Path) -> None:
    wrong = [
        f"{path.relative_to(package)} imports {name}"
        for path in modules(package)
        for name in imports(path, package=package, top_level=True)
        if name.split(".")[0] in HEAVY - (LOADED_BY_THE_HARNESS if unit(path, package) in HARNESS_IMPORTERS else set())
    ]
    assert wrong == []


def test_the_rules_find_what_they_look_for(tmp_path: Path) -> None:
    module = tmp_path / "metrics" / "rouge.py"
    module.parent.mkdir()
    module.write_text(
        "from typing import TYPE_CHECKING\nimport torch.nn\nfrom ..dqa import scorer\nfrom qilin_tasks import text\n"
        "if TYPE_CHECKING:\n    import vllm\nelse:\n    import ray\n"
        "class A:\n    import faiss\n    def f(self):\n        from lm_eval.api import task\n"
    )
    assert unit(module, tmp_path) == "metrics"
    assert imported_units(module, tmp_path) == {"dqa", "text"}
    assert {name.split(".")[0] for name in imports(module, package=tmp_path, top_level=True)} & HEAVY == {
        "torch",
        "ray",
        "faiss",
    }
    assert "lm_eval.api.task" in set(imports(module, package=tmp_path, top_level=False))
    assert layer_of("dqa") > layer_of("metrics")


def test_the_command_starts_without_anything_heavy(repo: Path) -> None:
    heavy = sorted(HEAVY | {"lm_eval"})
    code = f"import sys, qilin_tasks.cli; print(*[name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, ""), ran.stderr
