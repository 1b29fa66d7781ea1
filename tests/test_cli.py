"""The console script: every command is there, errors and exit codes, nothing more loaded than needed."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from qilin_tasks import __version__, cli
from qilin_tasks.errors import DataError, SettingError


def test_every_command_module_is_in_the_table_and_every_entry_has_a_module(repo: Path) -> None:
    files = (repo / "qilin_tasks" / "commands").glob("*.py")
    modules = {path.stem for path in files if "def add_parser(" in path.read_text(encoding="utf-8")}
    assert {name.replace("-", "_") for name in cli.COMMANDS} == modules


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("    ") and line.split()]
    assert [name for name in listed if name in cli.COMMANDS] == list(cli.COMMANDS)


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "run"])
def test_every_command_has_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: qilin-tasks {name}")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"qilin-tasks {__version__}\n"


def test_no_command_prints_the_help_and_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert capsys.readouterr().out.startswith("usage: qilin-tasks")


@pytest.mark.parametrize("arguments", [["instal"], ["path", "--frobnicate"], ["install", "extra"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "error:" in shown.err


def test_an_unknown_command_is_answered_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["instal"])
    shown = capsys.readouterr().err
    assert [name for name in cli.COMMANDS if name not in shown] == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("notes: column note_title is missing"), 1, "error: notes: column note_title is missing\n"),
        (SettingError("context 'bm26': choose from bert, bm25"), 1, "error: context 'bm26': choose from bert, bm25\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr("qilin_tasks.commands.path.run", fail)
    assert cli.main(["path"]) == code
    assert capsys.readouterr().err == message


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("qilin_tasks.commands.path.run", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["path"])


def test_a_command_loads_its_own_module_only() -> None:
    code = (
        "import sys; from qilin_tasks.cli import main; main(['path']); "
        "print(*sorted(name for name in sys.modules if name.startswith('qilin_tasks')), sep=' '); "
        "print('numpy' in sys.modules, 'lm_eval' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    _, loaded, heavy = ran.stdout.splitlines()
    assert loaded.split() == [
        "qilin_tasks",
        "qilin_tasks.cli",
        "qilin_tasks.commands",
        "qilin_tasks.commands.path",
        "qilin_tasks.errors",
    ]
    assert heavy == "False False"
