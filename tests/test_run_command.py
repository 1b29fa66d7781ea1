"""`qilin-tasks run`: what it adds to lm-eval's own command line, and that the whole works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.harness_copies import HarnessCopy, release

from qilin_tasks import cli, tasks_folder
from qilin_tasks.harness.backends import BACKENDS
from qilin_tasks.harness.location import Harness

OURS = [str(tasks_folder())]


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


@pytest.mark.parametrize("model", sorted(BACKENDS))
def test_every_backend_of_the_table_gets_its_batch_size(parsed: Any, gpu: None, model: str) -> None:
    chat = ["--apply_chat_template"] if BACKENDS[model].chat else []
    args = parsed("--model", model, "--tasks", "a", *chat)
    assert getattr(args, "batch_size", None) == BACKENDS[model].batch_size


def test_every_backend_of_the_table_is_one_of_the_harness() -> None:
    import lm_eval.models  # noqa: F401  (registers the harness's own)
    from lm_eval.api.registry import MODEL_REGISTRY

    import qilin_tasks.harness.baseline  # noqa: F401  (registers ours)

    assert [model for model in BACKENDS if model not in MODEL_REGISTRY] == []


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_model_of_the_harness_runs_and_installed_tasks_are_not_loaded_twice(
    copy: HarnessCopy, tmp_path: Path
) -> None:
    assert copy.command("install").returncode == 0
    results, log = evaluate(copy, tmp_path, "--tasks", "qilin_dqa_na", model="dummy")
    assert results["results"]["qilin_dqa_na"]["rouge_l,none"] == 0.0
    assert "overrides existing task" not in log and "Duplicate" not in log


@pytest.mark.slow
def test_an_error_of_ours_is_one_line(copy: HarnessCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "/no/such/folder")
    ran = copy.command(
        "run", "--model", "qilin-baseline", "--model_args", "strategy=lead", "--tasks", "qilin_dqa_na",
        "--metadata", "bertscore=off",
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("error: QILIN_DATA '/no/such/folder': choose from sample")
    assert "Traceback" not in ran.stderr


# What is checked before any model is loaded. The model named here can't be loaded, so reaching it would be an error
# of another kind.

NO_MODEL = ("--model", "hf", "--model_args", "pretrained=nobody/no-such-model")


@pytest.fixture
def refused(harness: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command, which must end with exit code 1 before a model is loaded; returns its last line."""
    monkeypatch.setenv("QILIN_DATA", "sample")

    def load(*ignored: Any, **also: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("lm_eval.api.registry.get_model", load)

    def run(*arguments: str) -> str:
        assert cli.main(["run", *NO_MODEL, *arguments]) == 1
        return capsys.readouterr().err.splitlines()[-1]

    return run


OFF = ("--metadata", "bertscore=off")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tasks", "qilin_dqa_bm26"), "task 'qilin_dqa_bm26': not a task, group or tag"),
        (("--tasks", "qilin_dqa_bm26"), "close: qilin_dqa_bm25"),
        (("--tasks", "qilin_dqa", "--metadata", "{note_chars:100}"), "'{note_chars:100}': not a JSON object"),
        (("--tasks", "qilin_dqa", "--metadata={note_chars:100}"), "or write note_chars=100"),
        (("--tasks", "qilin_dqa", "--metadata", "note_chars"), "'note_chars' is not key=value"),
        (("--tasks", "qilin_dqa_na", "--metadata", "max_note_chars=9"), "'max_note_chars', did you mean 'note_chars'?"),
        (("--tasks", "qilin_dqa_na", "--metadata", "k=9"), "none of the tasks has the setting 'k'"),
        (("--tasks", "qilin_dqa_na", "--metadata", "bertscore=off", "note_chars=x"), "note_chars 'x': must be a whole"),
        (("--tasks", "qilin_dqa_na", *OFF, "--num_fewshot", "3"), "--num_fewshot 3: these tasks set num_fewshot to 0"),
        (("--tasks", "qilin_dqa_na", *OFF, "--model_args", "pretrained=/no/model"), "'/no/model' does not exist"),
        (("--tasks", "qilin_dqa_na", *OFF, "--model_args", "pretrained=./tests"), "no config.json"),
        (("--tasks", "qilin_dqa_na", "--config", "/no/such.yaml"), "--config /no/such.yaml"),
        (("--model", "local-chat-completions", "--tasks", "qilin_dqa_na"), "add --apply_chat_template"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_before_a_model_is_loaded(
    refused: Any, arguments: tuple[str, ...], words: str
) -> None:
    line = refused(*arguments)
    assert line.startswith("error: ") and words in line


def test_a_server_that_is_not_there_is_one_line(
    harness: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The port was free a moment ago, and one attempt is enough."""
    import socket

    monkeypatch.setenv("QILIN_DATA", "sample")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1/chat/completions"
    for concurrent in (1, 2):
        model = f"model=m,base_url={address},max_retries=1,num_concurrent={concurrent}"
        arguments = ["--model", "local-chat-completions", "--model_args", model, "--apply_chat_template"]
        assert cli.main(["run", *arguments, "--tasks", "qilin_dqa_na", *OFF, "--limit", "1"]) == 1
        said = capsys.readouterr().err
        (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: nobody answers at the model's address") and "base_url" in line


def test_packages_that_an_extra_brings_are_looked_for_first(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find, missing = importlib.util.find_spec, ("aiohttp", "requests", "tenacity")
    # Only these: whatever a library imports for the first time meanwhile is there.
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name in missing else find(name, *rest))
    line = refused("--model", "local-completions", "--tasks", "qilin_dqa_na", *OFF)
    assert line == (
        "error: --model local-completions needs aiohttp, requests, tenacity: pip install 'qilin-tasks[api]'"
    )


def test_missing_data_is_one_line_before_a_model_is_loaded(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "/no/such/folder")
    assert refused("--tasks", "qilin_dqa_na", *OFF).startswith("error: QILIN_DATA '/no/such/folder'")


def test_metadata_reaches_the_harness_in_any_place_and_spelling(parsed: Any) -> None:
    for arguments in (
        ["--metadata", "top_k=3", "note_chars=90", "--tasks", "a", "b"],
        ["--tasks", "a", "b", "--metadata=top_k=3,note_chars=90"],
        ["run", "--tasks", "a", "b", "--metadata", '{"top_k": 3}', "--metadata", "note_chars=90"],
    ):
        args = parsed(*arguments)
        assert args.metadata == {"top_k": 3, "note_chars": 90} and args.tasks == ["a", "b"]


@pytest.mark.slow
def test_results_that_could_not_be_saved_are_told_by_the_exit_code(
    copy: HarnessCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    ran = copy.command(
        "run", "--model", "qilin-baseline", "--model_args", "strategy=empty", "--tasks", "qilin_dqa_na", *OFF,
        "--output_path", str(blocked / "out"), "--log_samples",
    )  # fmt: skip
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("error: not saved: Could not save results aggregated (") and "NotADirectoryError" in last


@pytest.mark.slow
def test_a_terminal_without_utf8(copy: HarnessCopy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "QILIN_DATA": "sample"}.items():
        monkeypatch.setenv(name, value)
    model = ("--model", "qilin-baseline", "--model_args", "strategy=lead")
    ran = copy.command("run", *model, "--tasks", "qilin_dqa_na", *OFF, "--output_path", str(tmp_path / "run"))
    assert ran.returncode == 0, ran.stderr
    ran = copy.command(
        "compare", "--model", "qilin-baseline:lead", "--tasks", "qilin_dqa_na", *OFF, "--out", str(tmp_path / "compare")
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert copy.command("doctor", "--tasks", "qilin_dqa_na", *OFF).returncode == 0
    assert copy.command("doctor", "--tasks", "没有", *OFF).returncode == 1


@pytest.mark.slow
def test_our_folders_are_all_that_is_read_where_they_are_enough(
    copy: HarnessCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken and a clashing YAML in the harness's own folder are never opened."""
    monkeypatch.setenv("QILIN_DATA", "sample")
    mine = copy.tasks / "clash"
    mine.mkdir()
    (mine / "clash.yaml").write_text("task: qilin_dqa_na\ndoc_to_text: nobody's\n", encoding="utf-8")
    model = ("--model", "qilin-baseline", "--model_args", "strategy=lead")
    ran = copy.command("run", *model, "--tasks", "qilin_dqa_na", *OFF, "--limit", "2", "--verbosity", "DEBUG")
    assert ran.returncode == 0, ran.stderr
    assert "clash" not in ran.stderr
    # With a task of the harness beside it the whole index is read, and ours goes over the other of that name.
    ran = copy.command("run", "validate", "--tasks", "qilin_dqa_na,sciq")
    assert "overrides existing task" in ran.stderr and "qilin_dqa_na" in ran.stderr
