"""Every command that the documentation shows exists, with the arguments it is shown with."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qilin_tasks import cli

REPO = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path for pattern in ("*.md", "docs/*.md", "lm_eval_tasks/*/*.md", "benchmarks/*.md") for path in REPO.glob(pattern)
)
TASKS = (REPO / "lm_eval_tasks", REPO / "examples")
FENCE = re.compile(r"^ *```(?:bash|sh|shell)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")
# Programs of others, shown as a step on the way.
FOREIGN = {"cd", "git", "export", "vllm", "ray", "apt-get", "sudo", "mkdir", "ssh"}


def shown() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of each command in a page's shell blocks, without comments and leading assignments."""
    for page in PAGES:
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                for command in re.split(r" && | \| ", line.removeprefix("$ ")):
                    words = shlex.split(command, comments=True)
                    while words and ASSIGNMENT.match(words[0]):
                        words = words[1:]
                    if words:
                        yield page.relative_to(REPO).as_posix(), words


COMMANDS = list(shown())


def task_names() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for folder in TASKS for path in folder.rglob("*.yaml")]
    return {name for text in texts for name in re.findall(r"^(?:task|group): *([\w.-]+) *$", text, re.MULTILINE)}


def check_harness(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval._cli.harness import HarnessCLI

    monkeypatch.setattr(sys, "argv", ["lm_eval", *words])
    args = HarnessCLI().parse_args()
    if "--tasks" in words:
        tasks = args.tasks if isinstance(args.tasks, str) else ",".join(args.tasks)
        assert set(tasks.split(",")) <= task_names()


def check_ours(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert words[0] in cli.COMMANDS
    module = cli.module_of(words[0])
    if hasattr(module, "run_raw"):
        check_harness(words[1:], monkeypatch)
    else:
        parser = argparse.ArgumentParser()
        module.add_parser(parser.add_subparsers())
        parser.parse_args(words)


def check_pip(words: list[str]) -> None:
    pyproject = (REPO / "pyproject.toml").read_text(encoding="utf-8")
    for extras in re.findall(r"^(?:\.|qilin-tasks)\[([\w,-]+)\]", "\n".join(words), re.MULTILINE):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE), f"no extra {extra!r}"


def check_script(words: list[str]) -> None:
    """A script's flags are looked up in its text, and in that of the module it shares with its neighbours."""
    script = REPO / words[0]
    assert script.is_file()
    text = "".join(path.read_text(encoding="utf-8") for path in script.parent.glob("*.py") if path != script)
    text = script.read_text(encoding="utf-8") + text
    for flag in (word.split("=")[0] for word in words[1:] if word.startswith("--")):
        assert f'"{flag}"' in text, f"{words[0]} has no {flag}"


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}: {shlex.join(words)}" for page, words in COMMANDS])
def test_a_documented_command_exists(page: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    program, rest = Path(words[0]).name, words[1:]
    if program == "make":
        makefile = (REPO / "Makefile").read_text(encoding="utf-8")
        targets = [word for word in rest if not ASSIGNMENT.match(word)]
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    elif program == "qilin-tasks":
        check_ours(rest, monkeypatch)
    elif program in ("lm_eval", "lm-eval"):
        check_harness(rest, monkeypatch)
    elif program == "pip":
        check_pip(rest)
    elif program.startswith("python") and rest[:2] == ["-m", "pip"]:
        check_pip(rest[2:])
    elif program.startswith("python"):
        check_script(rest)
    else:
        assert program in FOREIGN, f"{page} shows {program!r}, which this test does not know"


def test_the_two_commands_of_the_readme_are_among_them() -> None:
    assert {"demo", "test"} <= {words[1] for page, words in COMMANDS if page == "README.md" and words[0] == "make"}
