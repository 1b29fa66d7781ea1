"""examples/: the notebook runs from its first cell to its last, and the release's files agree with each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from qilin_tasks import __version__


@pytest.mark.slow
def test_the_notebook_runs(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(repo))
    monkeypatch.delenv("QILIN_DATA", raising=False)
    notebook = nbformat.read(repo / "examples" / "quickstart.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    assert re.search(r"reference +qilin_dqa_oracle +1\.0000", printed)
    assert re.search(r"difference 0\.\d{4} .* p = 0\.0", printed)


def test_the_versions_agree(repo: Path) -> None:
    citation = yaml.safe_load((repo / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert f"## {__version__}" in (repo / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_workflow_tests_every_python_that_is_declared(repo: Path) -> None:
    workflow = yaml.safe_load((repo / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    tested = workflow["jobs"]["quick"]["strategy"]["matrix"]["python"]
    declared = re.findall(r"Python :: (3\.\d+)", (repo / "pyproject.toml").read_text(encoding="utf-8"))
    assert tested == declared


def test_the_files_for_github_are_yaml_and_name_scripts_that_exist(repo: Path) -> None:
    files = [*repo.glob(".github/**/*.yml"), repo / ".pre-commit-config.yaml", repo / "mkdocs.yml"]
    assert len(files) == 6
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert yaml.safe_load(text)
        for script in re.findall(r"(?:scripts|\.ci)/[\w.-]+", text):
            assert (repo / script).is_file(), (path.name, script)
    for path in repo.glob("docker/*.Dockerfile"):
        for extras in re.findall(r'"\.\[([\w,]+)\]"', path.read_text(encoding="utf-8")):
            for extra in extras.split(","):
                assert f"\n{extra} = [" in (repo / "pyproject.toml").read_text(encoding="utf-8")


def test_table_11_names_the_papers_five_models(repo: Path) -> None:
    from qilin_tasks.compare.specs import read_models
    from qilin_tasks.harness.backends import BACKENDS
    from qilin_tasks.results.published import published_for

    specs = read_models(repo / "examples" / "table11.yaml")
    assert len(specs) == len(published_for("dqa", "na")) == 5
    for spec in specs:
        assert BACKENDS[spec.backend].argument in spec.args
        # Keys come through the environment alone.
        assert all(value == f"${{{name}}}" for name, value in spec.environment.items())
