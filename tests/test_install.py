"""`install`, `uninstall`, `path`, in throw-away copies of the real harness."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.harness_copies import HarnessCopy, editable, release

from qilin_tasks import __version__, tasks_folder
from qilin_tasks.errors import DependencyError
from qilin_tasks.harness.install import MANIFEST, InstallError, file_names, install, survey, task_folders, uninstall
from qilin_tasks.harness.location import find_harness

# What the harness lists, then the literal `lm_eval --tasks …`, in one process: importing it takes most of the time.
LIST_AND_RUN = """
import json, sys
import lm_eval
from lm_eval.__main__ import cli_evaluate
from lm_eval.tasks import TaskManager
print(json.dumps([lm_eval.__file__, {name: str(entry.yaml_path) for name, entry in TaskManager().task_index.items()}]))
sys.argv = ["lm_eval", *sys.argv[1:]]
cli_evaluate()
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small stand-in for our YAML folder, so that a test can age it."""
    root = tmp_path / "package"
    for name in ("qilin", "reqa"):
        (root / name / "deeper").mkdir(parents=True)
        (root / name / f"{name}.yaml").write_text(f"task: {name}\n", encoding="utf-8")
        (root / name / "deeper" / "_base").write_text("问题\n", encoding="utf-8")
    return root


@pytest.fixture
def harness(tmp_path: Path) -> Path:
    folder = tmp_path / "lm_eval" / "tasks"
    (folder / "sciq").mkdir(parents=True)
    (folder / "sciq" / "sciq.yaml").write_text("task: sciq\n", encoding="utf-8")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def states(harness: Path, source: Path) -> dict[str, str]:
    return {copy.target.name: copy.state for copy in survey(harness, root=source)}


def test_install_copies_every_file_and_records_them(harness: Path, source: Path) -> None:
    before = tree(harness)
    assert states(harness, source) == {"qilin": "missing", "reqa": "missing"}
    install(harness, root=source)
    after = tree(harness)
    assert {name: after.pop(name) for name in before} == before
    manifests = {f"{name}/{MANIFEST}" for name in ("qilin", "reqa")}
    assert {name: text for name, text in after.items() if name not in manifests} == tree(source)
    assert set(after) == {*tree(source), *manifests}
    assert json.loads(after[f"qilin/{MANIFEST}"])["version"] == __version__
    assert states(harness, source) == {"qilin": "current", "reqa": "current"}


def test_a_second_install_writes_nothing(harness: Path, source: Path) -> None:
    install(harness, root=source)
    stamps = {path: path.stat().st_mtime_ns for path in harness.rglob("*")}
    assert [copy.state for copy in install(harness, root=source)] == ["current", "current"]
    assert {path: path.stat().st_mtime_ns for path in harness.rglob("*")} == stamps


def test_an_upgrade_replaces_adds_and_drops_files_and_keeps_the_users_own(harness: Path, source: Path) -> None:
    install(harness, root=source)
    (harness / "qilin" / "mine.yaml").write_text("task: mine\n", encoding="utf-8")
    (source / "qilin" / "qilin.yaml").write_text("task: qilin\nversion: 2\n", encoding="utf-8")
    (source / "qilin" / "deeper" / "_base").unlink()
    (source / "qilin" / "new.yaml").write_text("task: new\n", encoding="utf-8")
    (copy, other) = survey(harness, root=source)
    assert (copy.state, copy.files) == ("stale", ("deeper/_base", "new.yaml", "qilin.yaml"))
    assert other.state == "current"
    install(harness, root=source)
    assert states(harness, source) == {"qilin": "current", "reqa": "current"}
    assert set(file_names(harness / "qilin")) == {"qilin.yaml", "new.yaml", "mine.yaml"}
    assert (harness / "qilin" / "qilin.yaml").read_text(encoding="utf-8") == "task: qilin\nversion: 2\n"


def test_a_deleted_file_comes_back(harness: Path, source: Path) -> None:
    install(harness, root=source)
    (harness / "reqa" / "reqa.yaml").unlink()
    assert states(harness, source)["reqa"] == "stale"
    install(harness, root=source)
    assert states(harness, source)["reqa"] == "current"


def test_a_folder_that_a_new_version_dropped_goes(harness: Path, source: Path) -> None:
    install(harness, root=source)
    shutil.rmtree(source / "reqa")
    assert states(harness, source) == {"qilin": "current", "reqa": "obsolete"}
    install(harness, root=source)
    assert not (harness / "reqa").exists()


@pytest.mark.parametrize("order", ["edited first", "upgrade first"])
def test_an_edited_file_is_never_overwritten(harness: Path, source: Path, order: str) -> None:
    install(harness, root=source)
    if order == "upgrade first":
        (source / "qilin" / "qilin.yaml").write_text("task: qilin\nversion: 2\n", encoding="utf-8")
    (harness / "qilin" / "qilin.yaml").write_text("task: my_edit\n", encoding="utf-8")
    before = tree(harness)
    with pytest.raises(InstallError, match=r"qilin\.yaml changed since .*delete the changed file"):
        install(harness, root=source)
    assert tree(harness) == before
    # Following the message's advice works.
    (harness / "qilin" / "qilin.yaml").unlink()
    install(harness, root=source)
    assert states(harness, source)["qilin"] == "current"


def test_a_users_file_under_a_name_that_a_new_version_uses_is_never_overwritten(harness: Path, source: Path) -> None:
    install(harness, root=source)
    (harness / "qilin" / "new.yaml").write_text("task: the_users\n", encoding="utf-8")
    (source / "qilin" / "new.yaml").write_text("task: new\n", encoding="utf-8")
    with pytest.raises(InstallError, match=r"new\.yaml changed"):
        install(harness, root=source)
    assert (harness / "qilin" / "new.yaml").read_text(encoding="utf-8") == "task: the_users\n"


def test_one_refused_folder_stops_the_others_too(harness: Path, source: Path) -> None:
    (harness / "reqa").mkdir()
    (harness / "reqa" / "reqa.yaml").write_text("task: somebody_elses\n", encoding="utf-8")
    before = tree(harness)
    with pytest.raises(InstallError, match=r"reqa was not written by qilin-tasks \(reqa\.yaml\); move it away"):
        install(harness, root=source)
    assert tree(harness) == before and not (harness / "qilin").exists()


@pytest.mark.parametrize("kind", ["file", "link", "empty folder", "broken manifest"])
def test_things_in_the_way_are_refused_and_survive(harness: Path, source: Path, tmp_path: Path, kind: str) -> None:
    place = harness / "qilin"
    if kind == "file":
        place.write_text("notes", encoding="utf-8")
    elif kind == "link":
        place.symlink_to(source / "qilin")
    elif kind == "empty folder":
        place.mkdir()
    else:
        install(harness, root=source)
        (place / MANIFEST).write_text("{not json", encoding="utf-8")
        (place / "qilin.yaml").write_text("task: my_edit\n", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(InstallError, match="not written by qilin-tasks"):
        install(harness, root=source)
    assert tree(tmp_path) == before
    uninstall(harness, root=source)
    assert os.path.lexists(place)
    if kind == "broken manifest":
        assert (place / "qilin.yaml").read_text(encoding="utf-8") == "task: my_edit\n"


def test_a_copy_by_hand_with_the_same_text_is_current_and_stays(harness: Path, source: Path) -> None:
    shutil.copytree(source / "qilin", harness / "qilin")
    assert states(harness, source)["qilin"] == "identical"
    install(harness, root=source)
    assert not (harness / "qilin" / MANIFEST).exists()
    ((kept, stays), (gone, nothing)) = uninstall(harness, root=source)
    assert (kept.target.name, set(stays)) == ("qilin", set(file_names(source / "qilin")))
    assert (gone.target.name, nothing) == ("reqa", ())


def test_uninstall_removes_exactly_what_install_wrote(harness: Path, source: Path) -> None:
    before = tree(harness)
    install(harness, root=source)
    (harness / "qilin" / "deeper" / "mine.yaml").write_text("task: mine\n", encoding="utf-8")
    (harness / "qilin" / "qilin.yaml").write_text("task: my_edit\n", encoding="utf-8")
    (harness / "reqa" / "__pycache__").mkdir()
    (harness / "reqa" / "__pycache__" / "utils.pyc").write_bytes(b"")
    removed = {copy.target.name: stays for copy, stays in uninstall(harness, root=source)}
    assert removed == {"qilin": ("deeper/mine.yaml", "qilin.yaml"), "reqa": ()}
    after = tree(harness)
    assert after.pop("qilin/qilin.yaml") == b"task: my_edit\n"
    assert after.pop("qilin/deeper/mine.yaml") == b"task: mine\n"
    assert after == before and not (harness / "reqa").exists()
    # A second time there is nothing of ours left.
    assert [copy.state for copy, _ in uninstall(harness, root=source)] == ["foreign"]


def test_a_manifest_cannot_lead_uninstall_out_of_its_folder(harness: Path, source: Path) -> None:
    install(harness, root=source)
    outside = harness / "sciq" / "sciq.yaml"
    evil = {"files": {"../sciq/sciq.yaml": hashlib.sha256(outside.read_bytes()).hexdigest()}}
    (harness / "qilin" / MANIFEST).write_text(json.dumps(evil), encoding="utf-8")
    uninstall(harness, root=source)
    assert outside.is_file()


def test_an_interrupted_swap_leaves_the_old_copy(harness: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(harness, root=source)
    before = tree(harness)
    (source / "qilin" / "qilin.yaml").write_text("task: qilin\nversion: 2\n", encoding="utf-8")
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target == harness / "qilin" and (self / "qilin.yaml").read_text(encoding="utf-8").endswith("2\n"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(InstallError, match="No space left on device"):
        install(harness, root=source)
    assert tree(harness) == before


def test_a_leftover_of_a_killed_install_is_cleared(harness: Path, source: Path) -> None:
    leftover = harness / ".qilin-tasks-unfinished-0a1b2c3d"
    leftover.mkdir()
    (leftover / "qilin.yaml").write_text("task: qilin\n", encoding="utf-8")
    (leftover / MANIFEST).write_text(json.dumps({"files": {}}), encoding="utf-8")
    install(harness, root=source)
    assert {path.name for path in harness.iterdir()} == {"sciq", "qilin", "reqa"}


def test_a_package_without_yaml_says_so(harness: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="holds no task folders; reinstall qilin-tasks"):
        install(harness, root=tmp_path / "nothing")


# The commands, with the real YAML, in copies of the real harness.


def tasks_of_a_run(copy: HarnessCopy, *arguments: str) -> dict[str, str]:
    """Runs plain lm_eval with the arguments, which must work; where each task that it knows came from."""
    ran = copy.run("-c", LIST_AND_RUN, *arguments)
    assert ran.returncode == 0, ran.stderr
    origin, tasks = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("[")))
    assert Path(origin).resolve() == (copy.tasks.parent / "__init__.py").resolve()
    return dict(tasks)


def exercise(copy: HarnessCopy, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The life of an installation, seen from the shell and from the harness."""
    before = tree(copy.tasks)
    unchecked = copy.command("install", "--check")
    assert unchecked.returncode == 1 and "qilin: not installed" in unchecked.stdout

    first = copy.command("install")
    assert first.returncode == 0, first.stderr
    for folder in task_folders():
        assert f"{folder.name}: wrote {copy.tasks / folder.name}" in first.stdout
        for name in file_names(folder):
            assert f"\n  {name}\n" in first.stdout
    assert copy.command("install", "--check").returncode == 0
    again = copy.command("install")
    assert again.returncode == 0 and "wrote" not in again.stdout

    monkeypatch.setenv("QILIN_DATA", "sample")
    tasks = tasks_of_a_run(
        copy, "--tasks", "qilin_dqa_oracle", "--model", "dummy", "--metadata", "bertscore=off",
        "--output_path", str(output),
    )  # fmt: skip
    (file,) = output.rglob("results_*.json")
    assert json.loads(file.read_text(encoding="utf-8"))["n-samples"]["qilin_dqa_oracle"]["original"] >= 16
    assert "sciq" in tasks
    ours = {name: path for name, path in tasks.items() if name.startswith(("qilin", "reqa"))}
    assert all(Path(path).is_relative_to(copy.tasks) for path in ours.values() if path != "None")
    assert {"qilin_dqa", "qilin_dqa_na", "qilin_dqa_bm25", "qilin_dqa_bert", "qilin_dqa_oracle"} <= ours.keys()

    edited = copy.tasks / "qilin" / "qilin_dqa_na.yaml"
    original = edited.read_bytes()
    edited.write_bytes(original + b"# mine\n")
    refused = copy.command("install")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ") and "qilin_dqa_na.yaml changed" in refused.stderr
    edited.write_bytes(original)

    (copy.tasks / "qilin" / "mine.txt").write_text("mine", encoding="utf-8")
    gone = copy.command("uninstall")
    assert gone.returncode == 0 and "these are not ours and stay: mine.txt" in gone.stdout
    (copy.tasks / "qilin" / "mine.txt").unlink()
    (copy.tasks / "qilin").rmdir()
    assert tree(copy.tasks) == before
    assert "nothing was installed" in copy.command("uninstall").stdout


@pytest.mark.slow
def test_in_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exercise(release(tmp_path), tmp_path / "runs", monkeypatch)


@pytest.mark.slow
def test_in_an_editable_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = editable(tmp_path)
    # The copy, not the test run's own lm-eval: setuptools' hook is what finds it.
    assert any(Path(copy.python).parents[1].rglob("__editable__*"))
    exercise(copy, tmp_path / "runs", monkeypatch)


def obey_permissions() -> None:
    """Root may write anywhere; without this capability (linux/capability.h, prctl(2)) it is held to the mode bits."""
    drop_from_bounding_set, dac_override = 24, 1
    if ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0) != 0:
        raise OSError("prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) failed")


def test_a_read_only_harness_is_left_as_it_was(tmp_path: Path) -> None:
    copy = release(tmp_path)
    before = tree(copy.tasks)
    options: dict[str, object] = {}
    if os.geteuid() == 0:
        options["preexec_fn"] = obey_permissions
    copy.tasks.chmod(0o555)
    refused = copy.command("install", **options)
    copy.tasks.chmod(0o755)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {copy.tasks} can't be written (Permission denied)")
    assert "qilin-tasks run" in refused.stderr
    assert tree(copy.tasks) == before


def test_an_older_lm_eval_is_named_with_the_fix(tmp_path: Path) -> None:
    copy = release(tmp_path, version="0.4.9.1")
    refused = copy.command("install")
    assert refused.returncode == 1
    assert "lm-eval 0.4.9.1" in refused.stderr and "older than 0.4.12" in refused.stderr
    assert "pip install --upgrade 'lm-eval>=0.4.12'" in refused.stderr
    assert not (copy.tasks / "qilin").exists()


@pytest.mark.parametrize("version", ["0.4.12.dev0", "0.4.13", "0.4.13.dev0", "0.5.0.dev1", "1.0rc1"])
def test_this_and_newer_versions_pass(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    assert find_harness().version == version


def test_a_namespace_leftover_is_not_taken_for_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lm_eval" / "tasks").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "PathFinder" in repr(finder)])
    for name in [name for name in sys.modules if name.split(".")[0] == "lm_eval"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(DependencyError, match=rf"empty namespace package here \({tmp_path}"):
        find_harness()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "elsewhere")])
    with pytest.raises(DependencyError, match="not installed in this Python; install it"):
        find_harness()


def test_a_harness_without_a_real_tasks_folder_is_refused(tmp_path: Path) -> None:
    copy = release(tmp_path)
    (copy.tasks / "__init__.py").unlink()
    refused = copy.command("install")
    assert refused.returncode == 1 and "has no tasks/__init__.py" in refused.stderr


def test_path_prints_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    from qilin_tasks.cli import main

    assert main(["path"]) == 0
    assert capsys.readouterr().out == f"{tasks_folder()}\n"
    assert (tasks_folder() / "qilin").is_dir()
