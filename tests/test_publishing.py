"""`--hf_hub_log_args` and `--wandb_args` through compare: lm-eval's own loggers, hub and wandb mocked at their edge."""

from __future__ import annotations

import importlib.util
import inspect
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from qilin_tasks.compare.dry_run import harness_command
from qilin_tasks.compare.processes import child_environment
from qilin_tasks.compare.specs import ModelSpec, check_models, read_models, with_loggers
from qilin_tasks.compare.state import Options, Pair, Planned, job_of
from qilin_tasks.errors import DependencyError, SettingError
from qilin_tasks.harness.command import run
from qilin_tasks.harness.publishing import HUB_ARGUMENTS, check_publishing

TOKEN = "hf_0123456789abcdefghijklmnop"
HUB = {"hub_results_org": "me", "push_results_to_hub": True, "push_samples_to_hub": True}

WANDB = """
from pathlib import Path

__version__ = "0.20.0"
run = None
calls = []


class Table:
    def __init__(self, columns):
        self.columns, self.rows = columns, []

    def add_data(self, *row):
        self.rows.append(row)


class Artifact:
    def __init__(self, name, type):
        self.name, self.type = name, type

    def new_file(self, name, mode, encoding):
        return (Path(__file__).parent / name).open(mode, encoding=encoding)


class Run:
    def __init__(self):
        self.config, self.summary = {}, {}
        self.config_update = self.config.update

    def log(self, values, step=None):
        if broken:
            raise RuntimeError("wandb is out of order")
        calls.append(("log", values))

    def log_artifact(self, artifact):
        calls.append(("artifact", artifact.name))

    def finish(self, exit_code):
        calls.append(("finish", exit_code))


class Config(dict):
    def update(self, values, allow_val_change=False):
        super().update(values)
        calls.append(("config", values))


broken = False


def init(**arguments):
    calls.append(("init", arguments))
    made = Run()
    made.config = Config()
    return made
"""


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, as far as the harness calls it, in a folder of its own."""
    printer = tmp_path / "packages" / "wandb" / "sdk" / "lib"
    printer.mkdir(parents=True)
    (tmp_path / "packages" / "wandb" / "__init__.py").write_text(WANDB)
    for folder in (printer, printer.parent):
        (folder / "__init__.py").touch()
    (printer / "printer.py").write_text("def new_printer():\n    return None\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    for name in ("wandb", "wandb.sdk", "wandb.sdk.lib", "wandb.sdk.lib.printer"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    import wandb  # type: ignore[import-not-found, unused-ignore]

    return wandb


class Hub:
    """HfApi, as far as the harness calls it."""

    calls: list[tuple[str, str, Any]]
    broken = False

    def __init__(self, token: str) -> None:
        self.calls.append(("token", token, None))

    def create_repo(self, *, repo_id: str, repo_type: str, private: bool, exist_ok: bool) -> None:
        assert (repo_type, private, exist_ok) == ("dataset", True, True)
        if self.broken:
            raise RuntimeError("the hub is out of order")

    def upload_file(self, *, repo_id: str, path_or_fileobj: str, path_in_repo: str, **_: str) -> None:
        self.calls.append((repo_id, path_in_repo, json.loads(Path(path_or_fileobj).read_text("utf-8"))))

    def upload_folder(self, *, repo_id: str, folder_path: str, path_in_repo: str, **_: str) -> None:
        self.calls.append((repo_id, path_in_repo, sorted(path.name for path in Path(folder_path).iterdir())))


def spec(**more: Any) -> ModelSpec:
    return ModelSpec(name="lead", backend="qilin-baseline", args={"strategy": "lead"}, **more)


def planned() -> Planned:
    return Planned("qilin_dqa_na", 2, 2, None, ("rouge_l",), 0, 0, 0)


def test_the_hub_takes_what_the_harness_takes() -> None:
    from lm_eval.loggers import EvaluationTracker

    assert {*HUB_ARGUMENTS, "output_path"} == {*inspect.signature(EvaluationTracker).parameters}


@pytest.mark.parametrize(
    ("hub", "message"),
    [
        ({"org": "me"}, "m: hf_hub_log_args: argument 'org': choose from details_repo_name"),
        ({"hub_results_org": "me"}, "m: hf_hub_log_args push nothing: add push_results_to_hub=true"),
        ({**HUB, "public_repo": "no"}, "m: hf_hub_log_args: public_repo 'no': choose from false, true"),
        (HUB, "m: hf_hub_log_args need a token that may write: export HF_TOKEN"),
    ],
)
def test_what_the_hub_would_refuse_is_refused_before_a_model_is_loaded(
    hub: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(SettingError, match=message):
        check_publishing(hub, {}, where="m")
    check_publishing(HUB, {}, environment={"HF_TOKEN": "x"})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "wandb" else find(name, *more))
    with pytest.raises(DependencyError, match="wandb_args need the package 'wandb': pip install"):
        check_models([spec(wandb_args={"project": "p"})])
    with pytest.raises(DependencyError, match="wandb_args need the package 'wandb': pip install"):
        run(["--model", "qilin-baseline", "--tasks", "qilin_dqa_na", "--wandb_args", "project=p"])


@pytest.mark.parametrize("place", ["hf_hub_log_args", "wandb_args", "wandb_config_args"])
def test_a_token_that_is_written_out_is_refused(place: str, monkeypatch: pytest.MonkeyPatch, wandb: Any) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    plain = HUB if place == "hf_hub_log_args" else {}
    with pytest.raises(SettingError, match=f"model 'lead', {place}: 'token' holds a key"):
        check_models([spec(**{place: {**plain, "token": TOKEN}})])
    check_models([spec(**{place: {**plain, "token": "${MY_TOKEN}"}})])
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(SettingError, match="environment variable MY_TOKEN is not set"):
        check_models([spec(**{place: {**plain, "token": "${MY_TOKEN}"}})])


def test_a_models_own_arguments_go_over_those_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        "- {name: a, backend: qilin-baseline, args: {strategy: lead}, wandb_args: {project: own}}\n"
    )
    given: dict[str, dict[str, Any]] = {"hf_hub_log_args": HUB, "wandb_args": {"project": "all", "entity": "us"}}
    [model] = [with_loggers(m, {**given, "wandb_config_args": {}}) for m in read_models(tmp_path / "models.yaml")]
    assert model.wandb_args == {"project": "own", "entity": "us"}
    assert model.hf_hub_log_args == HUB
    assert model.identity() == spec().identity()


def test_a_dry_run_shows_them_and_no_file_holds_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    model = spec(hf_hub_log_args={**HUB, "token": "${MY_TOKEN}"}, wandb_args={"project": "a b"})
    options = Options(tasks=("qilin_dqa_na",), out=tmp_path)
    command = harness_command(Pair(model, planned(), None, 0), options)
    words = shlex.split(command)
    assert json.loads(words[words.index("--wandb_args") + 1]) == {"project": "a b"}
    assert "--hf_hub_log_args" in words
    assert '\\"push_results_to_hub\\": true' in command
    assert "--wandb_config_args" not in words
    job = job_of(model, options, [planned()], identity=model.identity())
    assert job["hf_hub_log_args"] == {**HUB, "token": "${MY_TOKEN}"}
    assert TOKEN not in command + json.dumps(job)
    assert child_environment(job, {})["HF_TOKEN"] == TOKEN
    assert child_environment(job, {})["MY_TOKEN"] == TOKEN
    assert "HF_TOKEN" not in child_environment({**job, "hf_hub_log_args": {}}, {})


@pytest.mark.slow
def test_results_go_to_both_and_a_failure_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wandb: Any
) -> None:
    from qilin_tasks.compare.run import make_plan
    from qilin_tasks.compare.worker import run_job
    from qilin_tasks.results.reader import find_results

    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    Hub.calls = []
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    model = spec(hf_hub_log_args=HUB, wandb_args={"project": "p", "tags": ["a"]}, wandb_config_args={"why": "test"})
    options = Options(tasks=("qilin_dqa_bm25",), out=tmp_path / "runs", limit=2, metadata={"bertscore": "off"})
    tasks = make_plan(options, folder=tmp_path / "plan")
    job = job_of(model, options, tasks, identity=model.identity())

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / "runs/lead/status/qilin_dqa_bm25.json").read_text())
        return found

    monkeypatch.setattr(wandb, "broken", True)
    assert run_job(job) == 1
    assert "Weights & Biases did not take the results (RuntimeError: wandb is out of order)" in status()["error"]
    assert wandb.calls[-1] == ("finish", 1)
    monkeypatch.setattr(wandb, "broken", False)
    monkeypatch.setattr(Hub, "broken", True)
    assert run_job(job) == 1
    assert "the hub did not take the results" in status()["error"]
    assert "the hub is out of order" in status()["error"]
    assert not (tmp_path / "runs/lead/qilin_dqa_bm25").exists()
    monkeypatch.setattr(Hub, "broken", False)
    wandb.calls.clear()
    Hub.calls.clear()
    assert run_job(job) == 0

    [result] = find_results([tmp_path / "runs"])
    assert result.signature == tasks[0].signature
    token, aggregated, samples = Hub.calls
    assert token[1] == TOKEN
    assert aggregated[:2] == ("me/lm-eval-results-private", f"lead/{Path(result.path).name}")
    assert aggregated[2]["configs"]["qilin_dqa_bm25"]["metadata"]["signature"] == result.signature
    assert samples[:2] == ("me/lm-eval-results-private", "lead")
    assert len(samples[2]) == 2
    kinds = [kind for kind, _ in wandb.calls]
    assert (kinds[0], kinds[-1]) == ("init", "finish")
    assert wandb.calls[0][1] == {"name": "lead qilin_dqa_bm25", "project": "p", "tags": ["a"]}
    assert ("config", {"why": "test"}) in wandb.calls
    assert [name for kind, name in wandb.calls if kind == "artifact"] == ["results", "qilin_dqa_bm25"]
    logged = {key: value for kind, values in wandb.calls if kind == "log" for key, value in values.items()}
    assert logged["qilin_dqa_bm25/rouge_l"] == pytest.approx(aggregated[2]["results"]["qilin_dqa_bm25"]["rouge_l,none"])
    assert len(logged["qilin_dqa_bm25_eval_results"]) == 2
    written = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert written
    assert all(TOKEN.encode() not in content for content in written)
