"""Upstream's folders where they will live: its own tests, its CI's environment, and three versions of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from support.upstream import (
    ci_python,
    lm_eval_release,
    python_run,
    sample_documents,
    tasks_checkout,
    unpack_sdist,
    unpack_wheel,
    values_under,
)
from test_upstream_sdist import SELECTED

from qilin_tasks.upstream.checkout import FOLDERS, write_upstream

pytestmark = pytest.mark.slow

NEXT = "0.5.0.dev1"
TASKS = {
    "qilin": ["qilin_dqa_na", "qilin_dqa_bm25", "qilin_dqa_bert", "qilin_dqa_oracle"],
    "qilin_ranking": [
        f"qilin_{config}_{way}wise" for config in ("search", "recommendation") for way in ("list", "point")
    ],
}
ALL = ",".join(task for tasks in TASKS.values() for task in tasks)
GENERATED = "qilin_dqa_na,qilin_search_listwise"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_documents(tmp_path_factory.mktemp("documents"))


@pytest.fixture(scope="module")
def tasks_folder(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tasks_checkout(tmp_path_factory.mktemp("checkout"), documents=documents)


@pytest.fixture(scope="module")
def here(tasks_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Values under the installed release."""
    return values_under(None, tasks_folder, ALL, cwd=tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module", params=["main", NEXT])
def other(request: pytest.FixtureRequest, repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another version of lm-eval, as a folder for PYTHONPATH."""
    if request.param == "main":
        checkout = Path(os.environ.get("QILIN_LM_EVAL_MAIN", ""))
        if not (checkout / "lm_eval" / "__init__.py").is_file():
            pytest.skip("QILIN_LM_EVAL_MAIN names no checkout of lm-evaluation-harness's main branch")
        return checkout
    return unpack_wheel(lm_eval_release(repo, NEXT, binary=True), tmp_path_factory.mktemp("next"))


def test_another_version_gives_the_same_values(
    here: dict[str, Any], other: Path, tasks_folder: Path, tmp_path: Path
) -> None:
    found = values_under(other, tasks_folder, ALL, cwd=tmp_path)
    assert Path(found["lm_eval"]).is_relative_to(other)
    assert found["results"].keys() == here["results"].keys()
    for task, values in here["results"].items():
        assert found["results"][task] == pytest.approx(values, abs=1e-12)
        for row, expected in zip(found["samples"][task], here["samples"][task], strict=True):
            # A pointwise document holds a row for the aggregation, exact numbers all.
            exact = task.endswith("pointwise")
            assert row["values"] == (expected["values"] if exact else pytest.approx(expected["values"], abs=1e-12))


def repeated(tasks_folder: Path, folder: Path) -> Path:
    """The folders with `repeats: 2` in the base files of what is generated."""
    shutil.copytree(tasks_folder, folder)
    for base in ("qilin/_dqa_yaml", "qilin_ranking/_listwise_yaml"):
        with (folder / base).open("a", encoding="utf-8") as file:
            file.write("repeats: 2\n")
    return folder


def check_repeats(found: dict[str, Any], single: dict[str, Any]) -> None:
    """Every repeat has its answer, and the value is the mean over both."""
    differ = 0
    for task in GENERATED.split(","):
        for row, first in zip(found["samples"][task], single["samples"][task], strict=True):
            (answers,) = row["resps"]
            assert len(answers) == 2 and [answers[0]] == first["resps"][0]
            differ += row["values"] != first["values"]
    assert differ > 10, "the second answers should count"


def test_every_repeat_is_scored(here: dict[str, Any], tasks_folder: Path, tmp_path: Path) -> None:
    found = values_under(None, repeated(tasks_folder, tmp_path / "tasks"), GENERATED, cwd=tmp_path)
    check_repeats(found, here)


def test_every_repeat_is_scored_by_another_version(
    here: dict[str, Any], other: Path, tasks_folder: Path, tmp_path: Path
) -> None:
    in_yaml = values_under(other, repeated(tasks_folder, tmp_path / "tasks"), GENERATED, cwd=tmp_path)
    check_repeats(in_yaml, here)
    if (other / "lm_eval" / "scorers").is_dir():
        by_flag = values_under(other, tasks_folder, GENERATED, "--repeats", "2", cwd=tmp_path)
        assert by_flag["results"] == in_yaml["results"]


@pytest.fixture(scope="module")
def ci(repo: Path, documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Runs a Python as upstream's CI makes it, in lm-eval's source distribution with our folders written into it."""
    folder = tmp_path_factory.mktemp("ci")
    upstream = unpack_sdist(lm_eval_release(repo, version("lm_eval"), binary=False), folder)
    write_upstream(upstream, list(FOLDERS), dataset=str(documents))
    python = ci_python(folder / "python")

    def run(*arguments: str, **environment: str) -> Any:
        return python_run(
            python, *arguments, cwd=upstream, lm_eval=upstream, HF_DATASETS_CACHE=str(folder / "cache"), **environment
        )

    run.upstream = upstream  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("name", ["qilin_tasks", "bert_score", "rapidfuzz"])
def test_cis_environment_lacks_the_optional_packages(ci: Callable[..., Any], name: str) -> None:
    ran = ci("-c", f"import lm_eval; print(lm_eval.__file__); import {name}")
    assert ran.returncode == 1 and f"No module named '{name}'" in ran.stderr
    assert Path(ran.stdout.strip()).is_relative_to(ci.upstream)  # type: ignore[attr-defined]


def test_upstreams_own_tests_pass(ci: Callable[..., Any]) -> None:
    upstream = ci.upstream  # type: ignore[attr-defined]
    tasks = ALL.split(",")
    (upstream / "tests" / "__init__.py").touch()
    (upstream / "tests" / "utils.py").write_text(f"def new_tasks():\n    return {tasks!r}\n", encoding="utf-8")
    ran = ci("-m", "pytest", "tests/test_tasks.py", "-k", SELECTED, "-p", "no:cacheprovider", "-q", "-rA")
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-3000:]
    passed = re.findall(rf"^PASSED tests/test_tasks\.py::{SELECTED}::\w+\[([\w.-]+)\]", ran.stdout, re.MULTILINE)
    assert set(passed) == set(tasks) and len(passed) == 13 * len(tasks)


def test_the_stock_command_runs_them(ci: Callable[..., Any], tmp_path: Path) -> None:
    found = ci("-m", "lm_eval", "validate", "--tasks", f"qilin_dqa,qilin_ranking,{ALL}")
    assert found.returncode == 0 and "All tasks found and valid" in found.stdout + found.stderr, found.stdout[-3000:]
    ran = ci(
        "-m", "lm_eval", "run", "--model", "dummy", "--tasks", ALL, "--output_path", str(tmp_path), "--log_samples",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-6000:]
    (path,) = tmp_path.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert set(results) == set(ALL.split(","))
    for task in TASKS["qilin"]:
        assert (results[task]["rouge_l,none"], results[task]["empty_rate,none"]) == (0.0, 0.0)
        assert "bertscore_f1,none" not in results[task]
    assert ran.stderr.count("pip install bert-score") == 1


def test_bertscore_by_its_package_with_the_default_model(
    tasks_folder: Path, bert_chinese_cache: Path, tmp_path: Path
) -> None:
    found = values_under(
        None,
        tasks_folder,
        "qilin_dqa_na",
        "--limit",
        "4",
        cwd=tmp_path,
        QILIN_BERTSCORE="",
        HF_HUB_CACHE=str(bert_chinese_cache),
    )
    values = [row["values"]["bertscore_f1"] for row in found["samples"]["qilin_dqa_na"]]
    assert all(0 <= value <= 1 + 1e-6 for value in values) and len(set(values)) > 1


def test_ruff_with_upstreams_configuration(ci: Callable[..., Any]) -> None:
    upstream = ci.upstream  # type: ignore[attr-defined]
    paths = [str(upstream / "lm_eval" / "tasks" / name) for name in FOLDERS]
    for command in (["check"], ["format", "--check"]):
        arguments = ["-m", "ruff", *command, "--config", "pyproject.toml", "--no-cache", *paths]
        ran = python_run(sys.executable, *arguments, cwd=upstream)
        assert ran.returncode == 0, ran.stdout + ran.stderr
