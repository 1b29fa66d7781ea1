"""Every command that a message, a help text or a docstring of the package suggests exists, with its options."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from qilin_tasks import cli
from qilin_tasks.harness.backends import BACKENDS
from qilin_tasks.harness.registry import register

PACKAGE = Path(cli.__file__).parent
COMMAND = re.compile(r"(?<![\w/-])(qilin-tasks|lm_eval) (?=[a-z-])([^`;\n()]*)")
#: What follows the package's name where it is a name and no command.
PROSE = {"are", "that", "wrote", "did", "shows", "is", "was", "again", "where", "and", "will"}
OPTION = re.compile(r"(?<!\S)(--[\w-]+)")


def texts(path: Path) -> Iterator[str]:
    """The texts of a module, with X in the place of what an f-string fills in; implicit and explicit sums are one."""

    def text(node: ast.expr) -> str | None:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(text(part) or "" if isinstance(part, ast.Constant) else "X" for part in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = [text(node.left), text(node.right)]
            return None if sides == [None, None] else "".join("X" if side is None else side for side in sides)
        return None

    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        found = text(node) if isinstance(node, ast.expr) else None
        if found is not None:
            yield found
        else:
            pending.extend(ast.iter_child_nodes(node))


def suggested() -> list[tuple[str, str, str]]:
    """(module, program, what follows it) of each suggestion, each once."""
    found = [
        (path.relative_to(PACKAGE).as_posix(), *match)
        for path in sorted(PACKAGE.rglob("*.py"))
        for each in texts(path)
        for match in COMMAND.findall(each)
        if match[1].split()[0].rstrip(".,:") not in PROSE
    ]
    return list(dict.fromkeys(found))


SUGGESTED = suggested()


@cache
def options_of(command: str) -> frozenset[str]:
    """The options of one of our commands, or of the harness's `run`."""
    module = cli.module_of(command)
    if hasattr(module, "run_raw"):
        from lm_eval._cli.harness import HarnessCLI

        parser: argparse.ArgumentParser = HarnessCLI()._parser
        return _options(_subparsers(parser)["run"])
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    return _options(_subparsers(parser)[command])


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(action.choices)


def _options(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(option for action in parser._actions for option in action.option_strings)


def test_there_are_suggestions_and_a_wrong_one_is_found(tmp_path: Path) -> None:
    assert len(SUGGESTED) > 50
    module = tmp_path / "module.py"
    module.write_text(
        'a = f"run: qilin-tasks {x}" + " is; `qilin-tasks prepare --nowhere {y}`"\nb = "qilin-tasks fly"\n'
    )
    found = [match for each in texts(module) for match in COMMAND.findall(each)]
    assert found == [("qilin-tasks", "fly"), ("qilin-tasks", "prepare --nowhere {y}")]


@pytest.mark.parametrize(("module", "program", "rest"), SUGGESTED, ids=[f"{m}: {p} {r}" for m, p, r in SUGGESTED])
def test_a_suggested_command_exists(module: str, program: str, rest: str) -> None:
    words = rest.split()
    command = words[0].rstrip(".,:") if program == "qilin-tasks" and not words[0].startswith("-") else "run"
    assert command in cli.COMMANDS
    # What is in quotes is a value.
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "V", rest)
    assert {option.rstrip(".,:") for option in OPTION.findall(bare)} <= options_of(command)
    for backend in re.findall(r"--model ([a-z][a-z-]+)(?=[\s.,]|$)", rest):
        register()
        assert backend in BACKENDS
