"""`qilin-tasks doctor`: in order, and every way of not being in order."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.dqa_folder import dqa_row, write_dqa

from qilin_tasks.cli import main
from qilin_tasks.commands import doctor
from qilin_tasks.doctor import budget, environment
from qilin_tasks.doctor.findings import Finding, as_json, in_order
from qilin_tasks.harness.backends import BACKENDS, Backend
from qilin_tasks.harness.install import install
from qilin_tasks.harness.length import Model
from qilin_tasks.harness.location import Harness


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, and a harness into which nothing was installed, whatever the test run's own holds; its folder."""
    tasks = tmp_path_factory.mktemp("tasks")
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setattr("qilin_tasks.harness.location.find_harness", lambda: Harness("0.4.13", tasks))
    return tasks


@pytest.fixture
def examined(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command with `--json`; returns the exit code and the findings by check."""

    def run(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
        code = main(["doctor", "--json", *arguments])
        shown = json.loads(capsys.readouterr().out)
        assert shown["ok"] is (code == 0)
        return code, {check["check"]: check for check in shown["checks"]}

    return run


OFF = ("--metadata", "bertscore=off")


def test_a_finding_is_one_line() -> None:
    finding = Finding("data", "fail", "these columns:\n  - dqa.query: missing", "rename it")
    assert str(finding) == "FAIL data: these columns: - dqa.query: missing -> rename it"
    assert str(Finding("python", "ok", "3.11")) == "ok   python: 3.11"
    assert not in_order([finding]) and in_order([Finding("a", "warn", "b"), Finding("a", "ok", "b")])
    assert json.loads(as_json([finding]))["checks"][0]["fix"] == "rename it"


def test_everything_in_order(minilm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metadata = json.dumps({"bertscore_model": str(minilm), "bertscore_layer": 4})
    assert main(["doctor", "--tasks", "qilin_dqa", "--metadata", metadata, "--max_model_len", "8192"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "everything is in order"
    checks = [line[5:].split(":")[0] for line in lines[:-1]]
    for check in ("python", "packages", "backends", "data", "metric model", "context"):
        assert checks.count(check) == 1
    assert {f"qilin_dqa_{context}" for context in ("na", "bm25", "bert", "oracle")} <= set(checks)
    assert f"lm-eval {importlib.metadata.version('lm_eval')}" in next(line for line in lines if "packages:" in line)
    assert "_L4_" in next(line for line in lines if "metric model:" in line)


def test_a_missing_metric_model_fails_and_the_rest_is_still_looked_at(examined: Any) -> None:
    code, checks = examined("--tasks", "qilin_dqa_na,qilin_dqa_bm25", "--metadata", "bertscore_model=no/such-model")
    assert code == 1
    assert checks["metric model"]["status"] == "fail" and "no/such-model" in checks["metric model"]["detail"]
    assert [check for check, found in checks.items() if found["status"] == "fail"] == ["metric model"]
    assert checks["qilin_dqa_bm25"]["status"] == "ok" and "documents" in checks["qilin_dqa_bm25"]["detail"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("/no/such/folder", "choose from sample, an existing folder"),
        ("THUIR/Qilin", "QILIN_DATA=sample for the embedded sample"),
    ],
)
def test_data_that_is_not_there(
    spec: str, message: str, examined: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QILIN_DATA", spec)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    code, checks = examined(*OFF)
    assert code == 1
    assert checks["data"]["status"] == "fail" and message in checks["data"]["detail"]
    assert not any(check.startswith("qilin_dqa") for check in checks)


def rows(count: int, *, answer: str = "可以，先泡水再煮。") -> list[dict[str, Any]]:
    return [dqa_row(i, query=f"问题{i}", dqa_output=answer, ref_note_idx_list=[0]) for i in range(count)]


def test_every_missing_column_is_named(examined: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = write_dqa(tmp_path, rows(3), [("标题", "内容")], drop=["query", "dqa_output"])
    monkeypatch.setenv("QILIN_DATA", str(data))
    code, checks = examined(*OFF)
    assert code == 1
    assert "dqa.query: missing" in checks["data"]["detail"] and "dqa.dqa_output: missing" in checks["data"]["detail"]


def test_no_answered_row(examined: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, rows(3, answer="-1"), [("标题", "内容")])))
    code, checks = examined(*OFF)
    assert code == 1 and "3 rows of dqa, 0 answered" in checks["data"]["detail"]


def test_citations_that_no_note_can_have_are_counted(
    examined: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = rows(3)
    answers[1]["ref_note_idx_list"] = [0, 7, -1]
    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, answers, [("标题", "内容")])))
    code, checks = examined(*OFF)
    assert code == 0 and checks["data"]["status"] == "warn"
    assert "left out 2 cited ids of 1 rows that no note can have (7 in row 1)" in checks["data"]["detail"]


@pytest.mark.parametrize(
    ("release", "impossible", "told"),
    [
        ((3, 3, 1), False, []),
        ((3, 3, 1), True, ["left out 1 cited ids"]),
        ((4, 4, 1), False, ["the release had 4 rows of dqa, 4 answered, 1 notes"]),
        ((3, 3, 2), True, ["the release had 3 rows of dqa, 3 answered, 2 notes", "left out 1 cited ids"]),
        ((4, 4, 2), False, []),
        ((4, 4, 2), True, ["left out 1 cited ids"]),
    ],
)
def test_a_local_copy_of_the_release_is_compared_whatever_else_is_wrong(
    release: tuple[int, int, int], impossible: bool, told: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three answered rows and one note: a copy of a release that shares a number with them, else one's own data."""
    from qilin_tasks.doctor import data

    answers = rows(3)
    if impossible:
        answers[1]["ref_note_idx_list"] = [0, 7]
    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, answers, [("标题", "内容")])))
    monkeypatch.setattr(data, "RELEASE", data.Size(*release))
    (finding,) = data.dqa_data()
    assert finding.status == ("warn" if told else "ok")
    assert all(text in finding.detail for text in told)
    assert finding.detail.count(";") == len(told) and bool(finding.fix) == bool(told)


def test_a_release_of_another_size_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from qilin_tasks.doctor import data
    from qilin_tasks.sources.qilin import open_qilin

    monkeypatch.setenv("QILIN_DATA", str(write_dqa(tmp_path, rows(3), [("标题", "内容")])))
    monkeypatch.setattr(data, "DEFAULT", open_qilin().name)
    (finding,) = data.dqa_data()
    assert finding.status == "warn" and "the release had 6972 rows of dqa, 2932 answered" in finding.detail


def test_a_context_that_has_to_be_computed(examined: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = write_dqa(tmp_path, rows(12), [("标题", "内容")], drop=["bm25_results"])
    monkeypatch.setenv("QILIN_DATA", str(data))
    code, checks = examined("--tasks", "qilin_dqa_na", "qilin_dqa_bm25", *OFF)
    assert code == 1
    assert checks["data"]["status"] == checks["qilin_dqa_na"]["status"] == "ok"
    assert "qilin-tasks prepare --config dqa --retriever bm25" in checks["qilin_dqa_bm25"]["detail"]


@pytest.mark.parametrize(
    ("arguments", "check", "message"),
    [
        (("--tasks", "qilin_dqa_bm26"), "tasks", "close: qilin_dqa_bm25"),
        (("--metadata", "{broken"), "tasks", "not a JSON object"),
        (("--metadata", "bertscore"), "tasks", "is not key=value"),
        (("--tasks", "qilin_dqa_na", "--metadata", "context=bm26,bertscore=off"), "qilin_dqa_na", "choose from bert"),
        (("--tasks", "qilin_dqa_na", "--metadata", "bertscore=perhaps"), "metric model", "choose from off, on"),
    ],
)
def test_wrong_settings(arguments: tuple[str, ...], check: str, message: str, examined: Any) -> None:
    code, checks = examined(*arguments)
    assert code == 1
    assert checks[check]["status"] == "fail" and message in checks[check]["detail"]


def test_every_family_is_looked_at(examined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")
    names = ("qilin_search_pointwise", "qilin_recommendation_listwise", "reqa_xquad_zh", "reqa_xquad_zh_reader_bm25")
    code, checks = examined("--tasks", *names, *OFF, "--max_model_len", "8192")
    assert code == 0
    assert all("documents" in checks[name]["detail"] for name in names)
    assert " a paragraph, " in checks["reqa_xquad_zh"]["detail"]
    # Log-likelihood tasks ask for no answer; the listwise ones need most.
    assert "listwise needs most" in checks["context"]["detail"]


def test_off_the_net_everything_is_looked_at_and_nothing_is_tried_twice(
    examined: Any, hub_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        hub_at(f"http://127.0.0.1:{taken.getsockname()[1]}")
        tried: list[Any] = []
        connect = socket.socket.connect
        monkeypatch.setattr(socket.socket, "connect", lambda self, at: (tried.append(at), connect(self, at))[1])
        code, checks = examined("--tasks", "qilin_dqa_na,qilin_search_pointwise", "--model", "nobody/no-model")
    assert code == 1
    assert checks["hub"]["status"] == "warn" and "can't be reached" in checks["hub"]["detail"]
    assert {name for name, found in checks.items() if found["status"] == "fail"} == {"metric model", "context"}
    assert checks["data"]["status"] == checks["qilin_search_pointwise"]["status"] == checks["qilin_dqa_na"]["status"]
    assert len([at for at in tried if at[0] == "127.0.0.1"]) == 1


def test_a_setting_that_no_task_has(examined: Any) -> None:
    code, checks = examined("--tasks", "qilin_dqa_na", "--metadata", "max_note_chars=100")
    assert code == 1 and "'max_note_chars', did you mean 'note_chars'?" in checks["tasks"]["detail"]


# The context budget.


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), "ok", "of 8192"),
        (("--max_model_len", "4096"), "ok", "of 4096"),
        (("--max_model_len", "600"), "fail", "the limit is 600"),
        (("--max_gen_toks", "8192"), "fail", "+ 8192 of answer"),
        (("--max_model_len", "100000"), "fail", "has 8192 positions"),
    ],
)
def test_the_context_budget_with_the_models_tokenizer(
    arguments: tuple[str, ...], status: str, message: str, tiny_llm: Path, examined: Any
) -> None:
    code, checks = examined("--tasks", "qilin_dqa_na,qilin_dqa_oracle", *OFF, "--model", str(tiny_llm), *arguments)
    assert (code, checks["context"]["status"]) == (int(status == "fail"), status)
    assert message in checks["context"]["detail"]


def test_the_budget_is_that_of_the_longest_prompt(tiny_llm: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(tiny_llm))
    texts = ["短", "请回答用户的问题。" * 30, "abc"]
    requests = [SimpleNamespace(request_type="generate_until", args=(text, {"max_gen_toks": 7})) for text in texts]
    model = budget.model_of(str(tiny_llm))
    assert isinstance(model, Model)
    chat = [{"role": "user", "content": texts[1]}]
    expected = len(tokenizer.apply_chat_template(chat, tokenize=True, add_generation_prompt=True)["input_ids"])
    found = budget.context({"a": requests}, model, max_model_len=expected + 7, max_gen_toks=None)
    assert found.status == "ok" and f"{expected} tokens of prompt + 7 of answer" in found.detail
    assert budget.context({"a": requests}, model, max_model_len=expected + 6, max_gen_toks=None).status == "fail"


def test_without_a_model_the_budget_is_an_estimate(examined: Any) -> None:
    code, checks = examined("--tasks", "qilin_dqa_na", *OFF)
    assert code == 0 and checks["context"]["status"] == "warn" and "--max_model_len N" in checks["context"]["fix"]
    code, checks = examined("--tasks", "qilin_dqa_na", *OFF, "--max_model_len", "100")
    assert code == 0 and checks["context"]["status"] == "warn" and "the limit is 100" in checks["context"]["detail"]


def test_a_model_that_is_not_there(examined: Any) -> None:
    code, checks = examined("--tasks", "qilin_dqa_na", *OFF, "--model", "/no/such/model")
    assert code == 1 and "/no/such/model" in checks["context"]["detail"]


@pytest.mark.parametrize("value", ["0", "-3", "many"])
def test_lengths_are_numbers_from_1(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--max_model_len", value])
    assert left.value.code == 2 and value in capsys.readouterr().err


# The machine.


def test_another_python_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    (found,) = environment.python_version()
    assert found.status == "fail" and found.fix == "use Python 3.10 to 3.13"


def test_packages_come_from_our_own_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [found.status for found in environment.packages()] == ["ok"]
    wanted = ["numpy>=99", "no-such-package>=1", "torch>=2; extra == 'bertscore'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: wanted)
    faults = environment.packages()
    assert [found.status for found in faults] == ["fail", "fail"]
    assert [found.fix for found in faults] == ["pip install 'numpy>=99'", "pip install 'no-such-package>=1'"]
    assert [str(requirement.name) for requirement in environment.requirements("bertscore")] == ["torch"]


def test_missing_packages_end_the_examination_early(examined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["no-such-package"])
    code, checks = examined()
    assert code == 1 and "data" not in checks
    assert checks["packages"]["detail"] == "no-such-package is not installed"


def test_a_chosen_backend_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Backend(argument="pretrained", packages=("no_such_module",), extra="vllm")
    monkeypatch.setitem(BACKENDS, "vllm", lacking)
    (found,) = environment.backend("vllm")
    assert (found.status, found.fix) == ("fail", "pip install 'qilin-tasks[vllm]'")
    (found,) = environment.backend(None)
    assert found.status == "ok" and "vllm" not in found.detail.split(" (")[0].split(", ")
    assert environment.backend("qilin-baseline")[0].status == "ok"
    for name in BACKENDS:
        monkeypatch.setitem(BACKENDS, name, lacking)
    assert environment.backend(None)[0].status == "fail"


def test_every_backend_and_extra_of_the_table_exists() -> None:
    extras = set(importlib.metadata.metadata("qilin-tasks").get_all("Provides-Extra") or ())
    assert {backend.extra for backend in BACKENDS.values()} - {""} <= extras


@pytest.mark.parametrize(
    ("cuda", "build", "status", "words"),
    [
        (True, "13.0", "ok", "sees 2 device(s)"),
        (False, None, "fail", "a build without CUDA"),
        (False, "13.0", "fail", "sees none of them"),
    ],
)
def test_gpus_that_the_driver_lists_must_be_seen_by_torch(
    cuda: bool, build: str | None, status: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143000 MiB'\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    monkeypatch.setattr("torch.version.cuda", build)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (found,) = environment.accelerator()
    assert found.status == status and words in found.detail and "NVIDIA H200, 143000 MiB free" in found.detail
    assert build != "13.0" or status == "ok" or found.fix == "unset CUDA_VISIBLE_DEVICES"


def test_no_gpu_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    (found,) = environment.accelerator()
    assert found.status == "warn" and "no GPU" in found.detail


@pytest.mark.parametrize(("available", "status"), [(7_800_000, "warn"), (23_000_000, "ok")])
def test_the_memory_that_vllm_on_a_cpu_reserves(
    available: int, status: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal:       24000000 kB\nMemAvailable:   {available} kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(environment, "_importable", lambda module: True)
    monkeypatch.setattr(environment, "_version", lambda name: "0.32.0+cpu")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    assert environment.memory(meminfo)[0].status == "ok"
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")
    (found,) = environment.memory(meminfo)
    assert found.status == status
    assert ("gpu_memory_utilization=0.23" in found.fix) is (status == "warn")
    monkeypatch.setattr(environment, "_version", lambda name: "0.32.0")
    assert environment.memory(meminfo) == []


def test_a_full_disk_fails_and_nothing_is_fetched(examined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "THUIR/Qilin")
    usage = SimpleNamespace(total=1 << 40, used=0, free=5 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    code, checks = examined()
    assert code == 1
    assert checks["disk, results"]["status"] == "ok"
    assert checks["disk, hub cache"]["status"] == "fail" and "5.0 GiB free" in checks["disk, hub cache"]["detail"]
    assert checks["data"]["detail"] == "not looked at: a download would fill the disk"


# Our tasks in the harness.


def test_the_state_of_the_installed_tasks(sample: Path) -> None:
    def states() -> dict[str, str]:
        return {found.check: found.status for found in doctor.installed_tasks()}

    assert set(states().values()) == {"warn"} and "installed tasks, qilin" in states()
    install(sample)
    assert set(states().values()) == {"ok"}
    (sample / "qilin" / "qilin_dqa.yaml").write_text("group: qilin_dqa\n", encoding="utf-8")
    assert states()["installed tasks, qilin"] == "fail"
