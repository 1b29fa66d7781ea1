"""`qilin-tasks run`: what it adds to lm-eval's own command line, and that the whole works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.harness_copies import HarnessCopy, release

from qilin_tasks import cli, tasks_folder
from qilin_tasks.commands import run as command
from qilin_tasks.harness.install import install, task_folders
from qilin_tasks.harness.location import Harness

OURS = [str(folder) for folder in task_folders()]


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tasks folder into which nothing was installed, whatever the test run's own harness holds."""
    tasks = tmp_path_factory.mktemp("tasks")
    monkeypatch.setattr("qilin_tasks.harness.location.find_harness", lambda: Harness("0.4.13", tasks))
    return tasks


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch, harness: Path) -> Any:
    """Runs the command up to the point where lm-eval would start; returns the arguments that it would start with."""
    from lm_eval._cli import HarnessCLI

    def run(*arguments: str) -> Any:
        seen: list[Any] = []
        monkeypatch.setattr(HarnessCLI, "execute", lambda self, args: seen.append(args))
        assert cli.main(["run", *arguments]) == 0
        return seen[0]

    return run


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)


def test_arguments_reach_the_harness_as_they_are(parsed: Any) -> None:
    args = parsed(
        "--model", "vllm", "--model_args", "pretrained=m,max_model_len=4096", "dtype=float32", "--tasks", "a", "b",
        "--metadata", '{"bertscore": "off"}', "--limit", "2", "--gen_kwargs", 'temperature=0,stop=["\\n"]',
    )  # fmt: skip
    assert args.command == "run"
    assert args.model_args == {"pretrained": "m", "max_model_len": 4096, "dtype": "float32"}
    assert args.tasks == ["a", "b"]
    assert args.metadata == {"bertscore": "off"}
    assert args.gen_kwargs == {"temperature": 0, "stop": ["\n"]}
    assert (args.limit, args.include_path, args.batch_size) == (2.0, OURS, "auto")


def test_sys_argv_is_as_before(parsed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["qilin-tasks", "something"])
    parsed("--tasks", "a")
    import sys

    assert sys.argv == ["qilin-tasks", "something"]


@pytest.mark.parametrize(
    "spelling", [["--batch_size", "4"], ["--batch_size=4"], ["-b4"], ["-b", "4"], ["--batch", "4"]]
)
def test_a_batch_size_of_the_users_stands(parsed: Any, spelling: list[str]) -> None:
    assert parsed("--model", "vllm", "--tasks", "a", *spelling).batch_size == "4"


def test_a_config_file_is_the_users_word_too(parsed: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    file = tmp_path / "run.yaml"
    file.write_text(f"model: vllm\nbatch_size: 7\ninclude_path: {mine}\ntasks: [a]\n", encoding="utf-8")
    args = parsed("--config", str(file))
    assert not hasattr(args, "batch_size")
    assert args.include_path == [*OURS, str(mine)]
    file.write_text("model: vllm\ntasks: [a]\n", encoding="utf-8")
    assert parsed("--config", str(file)).batch_size == "auto"


@pytest.mark.parametrize("model", sorted(command.BATCH_SIZES))
def test_every_backend_of_the_table_gets_its_batch_size(parsed: Any, gpu: None, model: str) -> None:
    args = parsed("--model", model, "--tasks", "a")
    assert getattr(args, "batch_size", None) == command.BATCH_SIZES[model]


def test_every_backend_of_the_table_is_one_of_the_harness() -> None:
    import lm_eval.models  # noqa: F401  (registers the harness's own)
    from lm_eval.api.registry import MODEL_REGISTRY

    import qilin_tasks.harness.baseline  # noqa: F401  (registers ours)

    assert [model for model in command.BATCH_SIZES if model not in MODEL_REGISTRY] == []


@pytest.mark.parametrize("device", [[], ["--device", "cpu"], ["--device", "cuda:0"], ["--model_args", "device=cpu"]])
def test_hf_on_a_cpu_is_not_probed(
    parsed: Any, no_gpu: None, device: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    args = parsed("--model", "hf", "--tasks", "a", *device)
    assert not hasattr(args, "batch_size")
    assert "--batch_size N" in capsys.readouterr().err


@pytest.mark.parametrize("device", [[], ["--device", "cuda:1"], ["--device", "mps"]])
def test_hf_on_an_accelerator_is_probed(parsed: Any, gpu: None, device: list[str]) -> None:
    assert parsed("--tasks", "a", *device).batch_size == "auto"


def test_an_unknown_backend_keeps_the_harness_default(parsed: Any) -> None:
    assert not hasattr(parsed("--model", "somebodys-plugin", "--tasks", "a"), "batch_size")


def test_the_users_include_path_is_kept_beside_ours(parsed: Any, tmp_path: Path) -> None:
    assert parsed("--tasks", "a", "--include_path", str(tmp_path)).include_path == [*OURS, str(tmp_path)]


def test_folders_that_are_installed_and_current_are_not_included_again(
    parsed: Any, harness: Path, tmp_path: Path
) -> None:
    install(harness)
    assert parsed("--tasks", "a").include_path is None
    assert parsed("--tasks", "a", "--include_path", str(tmp_path)).include_path == [str(tmp_path)]
    # An older copy must not be what runs.
    (harness / "qilin" / "qilin_dqa.yaml").unlink()
    assert parsed("--tasks", "a").include_path == [path for path in OURS if path.endswith("qilin")]


def test_an_include_path_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--tasks", "a", "--include_path", "/no/such/folder"]) == 1
    assert capsys.readouterr().err.startswith("error: --include_path /no/such/folder: no such folder")


def test_the_other_sub_commands_of_lm_eval_see_our_tasks(parsed: Any) -> None:
    args = parsed("ls", "subtasks")
    assert (args.command, args.what, args.include_path) == ("ls", "subtasks", OURS)
    assert parsed("validate", "--tasks", "qilin_dqa").include_path == OURS


def test_wrong_usage_is_the_harness_to_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "--tasks", "a", "--frobnicate"])
    assert left.value.code == 2
    assert "--frobnicate" in capsys.readouterr().err


def test_help_says_what_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "--batch_size auto" in shown and "usage: lm-eval run" in shown and "--model_args" in shown


def test_a_harness_with_another_command_line_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import lm_eval.__main__

    monkeypatch.delattr(lm_eval.__main__, "HarnessCLI")
    assert cli.main(["run", "--tasks", "a"]) == 1
    assert "lm_eval --include_path $(qilin-tasks path)" in capsys.readouterr().err


# Whole runs, in a copy of the harness that nobody else writes to.


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> HarnessCopy:
    return release(tmp_path_factory.mktemp("harness"))


def evaluate(
    copy: HarnessCopy, output: Path, *arguments: str, model: str = "qilin-baseline"
) -> tuple[dict[str, Any], str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        ran = copy.command(
            "run", "--model", model, "--metadata", '{"bertscore": "off"}',
            "--output_path", str(output), *arguments,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (file,) = output.rglob("results_*.json")
    return json.loads(file.read_text(encoding="utf-8")), ran.stderr


def test_a_baseline_runs_beside_a_task_of_the_users(copy: HarnessCopy, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    base = tasks_folder() / "qilin" / "_dqa_yaml"
    text = f"include: {base}\ntask: my_dqa\nmetadata:\n  version: 1.0\n  context: oracle\n  note_chars: 50\n"
    (mine / "my_dqa.yaml").write_text(text, encoding="utf-8")
    results, log = evaluate(
        copy, tmp_path / "out", "--model_args", "strategy=reference", "--tasks", "qilin_dqa_oracle,my_dqa",
        "--include_path", str(mine),
    )  # fmt: skip
    assert results["results"].keys() == {"qilin_dqa_oracle", "my_dqa"}
    assert all(values["rouge_l,none"] == 1.0 for values in results["results"].values())
    assert "note:50" in results["configs"]["my_dqa"]["metadata"]["signature"]
    assert "overrides existing task" not in log


def test_a_model_of_the_harness_runs_and_installed_tasks_are_not_loaded_twice(
    copy: HarnessCopy, tmp_path: Path
) -> None:
    assert copy.command("install").returncode == 0
    results, log = evaluate(copy, tmp_path, "--tasks", "qilin_dqa_na", model="dummy")
    assert results["results"]["qilin_dqa_na"]["rouge_l,none"] == 0.0
    assert "overrides existing task" not in log and "Duplicate" not in log


def test_an_error_of_ours_is_one_line(copy: HarnessCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "/no/such/folder")
    ran = copy.command(
        "run", "--model", "qilin-baseline", "--model_args", "strategy=lead", "--tasks", "qilin_dqa_na",
        "--metadata", "bertscore=off",
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("error: QILIN_DATA '/no/such/folder': choose from sample")
    assert "Traceback" not in ran.stderr
