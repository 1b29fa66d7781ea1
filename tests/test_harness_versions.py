"""The oldest lm-eval that works and the coming one give what this one gives, document by document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.harness_versions import other_release
from support.versions_script import FAMILIES, write_folder

from qilin_tasks.harness.location import MINIMUM, TESTED, release, untested

THIS = "0.4.13"
OTHERS = [version for version in TESTED if version != THIS]


def made_under(path: list[Path], folder: Path, repo: Path) -> dict[str, Any]:
    """What the script makes with the packages of `path` before the test run's."""
    out = folder / "made.json"
    write_folder(folder, repo / "lm_eval_tasks")
    script = repo / "tests" / "support" / "versions_script.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [repo, *path]))}
    command = [sys.executable, str(script), str(folder), str(out)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> dict[str, Any]:
    return made_under([], tmp_path_factory.mktemp("here"), repo)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two values differ by more than 1e-12, or in anything else."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{where}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found for i, pair in enumerate(zip(one, other, strict=True)) for found in differences(*pair, f"{where}/{i}")
        ]
    if isinstance(one, float) and isinstance(other, float):
        return [] if abs(one - other) <= 1e-12 else [f"{where}: {one!r} and {other!r}"]
    return [] if one == other else [f"{where}: {str(one)[:200]} and {str(other)[:200]}"]


def test_differences_are_found() -> None:
    assert differences({"a": [1.0, {"b": "x"}]}, {"a": [1.0 + 1e-13, {"b": "x"}]}) == []
    assert len(differences({"a": [1.0, 2.0]}, {"a": [1.1, 2.5]})) == 2
    assert differences({"a": 1}, {"b": 1}) and differences([1], [1, 2]) and differences("1", 1)


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_another_release_gives_the_same(
    version: str, here: dict[str, Any], tmp_path: Path, repo: Path, request: pytest.FixtureRequest
) -> None:
    there = made_under([other_release(version, request.config.cache.mkdir(f"lm-eval-{version}"))], tmp_path, repo)
    assert (here["version"], there["version"]) == (THIS, version)
    assert there["made"].keys() >= {f"{task}|{strategy}" for task, strategy in FAMILIES.items()}
    assert differences(here["made"], there["made"]) == []


@pytest.mark.slow
def test_repeats_are_all_scored(here: dict[str, Any]) -> None:
    task = here["made"]["repeats"]["tasks"]["my_repeats"]
    # The n-th answer to a prompt has 5 n characters: 5, 10 and 15.
    assert task["values"]["answer_chars,none"] == 10.0
    assert (task["variance"]["repeats"], task["variance"]["within"]["answer_chars"]) == (3, 25.0)
    assert task["variance"]["between"]["answer_chars"] == 0.0
    assert task["variance"]["within"]["rouge_l"] > 0 < task["variance"]["between"]["rouge_l"]
    assert "|repeats:3|" in task["signature"]


@pytest.mark.slow
def test_metrics_of_ones_own(here: dict[str, Any]) -> None:
    task = here["made"]["metrics of one's own"]["tasks"]["my_metrics"]
    assert set(task["values"]) == {"rouge_l,none", "has_digit,none", "share,none"}
    assert task["values"]["has_digit,none"] == 1.0
    assert 0 < task["values"]["share,none"] < 1
    (rescored,) = here["made"]["own, rescored"].values()
    assert {"has_digit", "share", "rouge_l"} == set(rescored["values"])


@pytest.mark.slow
def test_a_group_may_override_settings_two_levels_down(here: dict[str, Any]) -> None:
    tasks = here["made"]["override two levels down"]["tasks"]
    assert tasks["qilin_dqa_bm25"]["signature"].startswith("dqa|ctx:bm25|k:1|")
    assert all(documents["notes_shown"] <= 1 for _, documents in tasks["qilin_dqa_bm25"]["documents"])
    assert set(tasks) == {"qilin_dqa_bm25", "qilin_dqa_na"}


@pytest.mark.slow
def test_predictions_get_all_metrics_later(here: dict[str, Any]) -> None:
    (rescored,) = here["made"]["predicted, rescored"].values()
    assert {"rouge_l", "rouge_l_jieba", "empty_rate", "notes_shown"} <= set(rescored["values"])
    assert "bypass" not in rescored["values"]


@pytest.mark.slow
def test_the_group_qilin_holds_the_whole_folder(here: dict[str, Any], repo: Path) -> None:
    files = {path.stem for path in (repo / "lm_eval_tasks" / "qilin").glob("qilin_*.yaml")}
    groups = {"qilin_dqa", "qilin_ranking", "qilin_search", "qilin_recommendation"}
    whole = here["made"]["the whole folder"]
    # The tasks of EVIDENCE.md ask other questions than the benchmark's, and one shows only a run of one's own.
    apart = {"qilin_dqa_contexts", "qilin_dqa_cite", "qilin_dqa_noevidence"}
    apart |= {name for name in files if name.startswith("qilin_dqa_grid")}
    # Asked about covers, they can't be asked without: a run of the whole folder must not need QILIN_IMAGES.
    apart |= {name for name in files if name.endswith("_vlm_pointwise")}
    assert set(whole["tasks"]) == files - groups - apart
    assert set(whole["groups"]) == groups


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.4.13", (0, 4, 13)),
        ("0.4.13.dev0", (0, 4, 13)),
        ("0.5.0.dev1", (0, 5, 0)),
        ("0.5", (0, 5, 0)),
        ("1.0rc1", (1, 0, 0)),
    ],
)
def test_a_development_version_counts_as_its_release(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers


def test_what_the_tests_do_not_know_is_named() -> None:
    assert [untested(version) for version in (*TESTED, "0.4.13.dev0", "0.5.0")] == [""] * (len(TESTED) + 2)
    assert untested("0.6.1").startswith("lm-eval 0.6.1 is newer than what qilin-tasks")
    assert TESTED[0] == MINIMUM
