"""The patches of docs/upstream: each is small, has a test, applies to upstream's main and passes there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.upstream import python_run

PATCHES = sorted((Path(__file__).resolve().parents[1] / "docs" / "upstream").glob("*.patch"))
# A pull request with a group beside its task, as upstream's `new_tasks` reads it.
FOREIGN = {
    "foreign_a.yaml": """\
task: foreign_a
dataset_path: json
dataset_kwargs: {data_files: {test: ROWS}}
test_split: test
output_type: generate_until
doc_to_text: "{{q}}"
doc_to_target: a
""",
    "foreign.yaml": "group: foreign\ntask:\n  - foreign_a\n",
}


def files(patch: Path) -> dict[str, int]:
    """The files that a patch touches, each with the number of added lines."""
    found: dict[str, int] = {}
    name = ""
    for line in patch.read_text(encoding="utf-8").splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
        elif line.startswith("+") and name:
            found[name] = found.get(name, 0) + 1
    return found


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_is_small_and_has_a_test(patch: Path) -> None:
    changed = files(patch)
    tests = {name for name in changed if name.startswith("tests/")}
    assert tests
    assert sum(added for name, added in changed.items() if name not in tests) <= 20
    assert (PATCHES[0].parent / "README.md").read_text(encoding="utf-8").count(f"({patch.name})") == 1


@pytest.mark.slow
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_applies_to_main_and_its_tests_need_it(patch: Path, tmp_path: Path) -> None:
    main = Path(os.environ.get("QILIN_LM_EVAL_MAIN", ""))
    if not (main / "tests" / "test_tasks.py").is_file():
        pytest.skip("QILIN_LM_EVAL_MAIN names no checkout of lm-evaluation-harness's main branch")
    copy = copied(main, tmp_path / "checkout")
    tests = [name for name in files(patch) if name.startswith("tests/")]
    if files(patch).keys() != set(tests):
        apply(patch, copy, "--include=tests/*")
    assert run_tests(copy, tests).returncode != 0, "the tests pass without the fix"
    apply(patch, copy, *(["--exclude=tests/*"] if files(patch).keys() != set(tests) else []))
    ran = run_tests(copy, tests)
    assert ran.returncode == 0, ran.stdout[-3000:]


def copied(main: Path, copy: Path) -> Path:
    """A checkout without its task folders, and with one new folder of tasks as its CI would be told of it."""
    tasks = main / "lm_eval" / "tasks"

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(folder) == tasks and (tasks / name).is_dir()} | {"__pycache__"}

    for name in ("lm_eval", "tests"):
        shutil.copytree(main / name, copy / name, ignore=ignored)
    place = copy / "lm_eval" / "tasks" / "foreign"
    place.mkdir()
    rows = place / "rows.jsonl"
    rows.write_text("".join(f'{{"q": "{n} + 1 =", "a": "{n + 1}"}}\n' for n in range(12)), encoding="utf-8")
    for name, text in FOREIGN.items():
        (place / name).write_text(text.replace("ROWS", str(rows)), encoding="utf-8")
    listed = copy / ".github" / "outputs" / "tasks_all_changed_and_modified_files.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text(" ".join(f"lm_eval/tasks/foreign/{name}" for name in FOREIGN), encoding="utf-8")
    return copy


def apply(patch: Path, copy: Path, *options: str) -> None:
    command = ["git", "apply", *options, str(patch)]
    applied = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, applied.stderr


def run_tests(copy: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    selected = ["-k", "NewTasks or new_group"] if tests == ["tests/test_tasks.py"] else []
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *selected]
    return python_run(sys.executable, *arguments, cwd=copy, lm_eval=copy)
