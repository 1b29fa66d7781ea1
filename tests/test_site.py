"""The site: builds strictly without a network, and its reference is what the code says."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import qilin_tasks
from qilin_tasks import cli
from qilin_tasks.families import FAMILIES

LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"?(https?:)?//")


def build(repo: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {"PYTHONPATH": str(repo), "PATH": "/usr/bin:/bin", "HOME": str(out.parent)}
    return subprocess.run(command, cwd=repo, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    built = build(repo, out)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_every_page_of_docs_is_there(site: Path, repo: Path) -> None:
    for page in (repo / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
    assert (site / "index.html").is_file() and (site / "lm_eval_tasks" / "reqa" / "index.html").is_file()


def test_the_metrics_are_those_of_the_tables(site: Path) -> None:
    shown = text_of(site / "reference" / "metrics.html")
    for family in FAMILIES.values():
        for name, row in family.scorer.METRICS.items():
            assert name in shown and row.about in shown
    for source in ("Lin 2004", "arXiv 1905.13322", "Järvelin and Kekäläinen"):
        assert source in shown


def test_the_settings_are_those_of_the_classes(site: Path) -> None:
    shown = text_of(site / "reference" / "settings.html")
    for family in FAMILIES.values():
        for field in fields(family.settings):
            assert field.name in shown
    assert re.search(r"note_chars\s+int\s+20\s+600", shown)


def test_the_commands_are_those_of_the_parsers(site: Path) -> None:
    shown = text_of(site / "reference" / "commands.html")
    for name in cli.COMMANDS:
        assert f"usage: qilin-tasks {name}" in shown or name == "run"
    assert "--on_refusal" in shown and "--repair" in shown


def test_the_python_page_has_every_public_name(site: Path) -> None:
    shown = text_of(site / "reference" / "python.html")
    for name, module in qilin_tasks.PUBLIC.items():
        assert name in shown and module in shown


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    outside = [page.name for page in pages if any(m for m in LOADED.finditer(page.read_text(encoding="utf-8")))]
    assert outside == []


@pytest.mark.slow
def test_a_link_to_nothing_fails_the_build(repo: Path, tmp_path: Path) -> None:
    """A copy of the checkout's pages with one page that links to no heading."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("docs", "scripts", "lm_eval_tasks"):
        shutil.copytree(repo / name, copy / name)
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "mkdocs.yml"):
        shutil.copy(repo / name, copy / name)
    (copy / "qilin_tasks").symlink_to(repo / "qilin_tasks")
    (copy / "docs" / "lost.md").write_text("# Lost\n\n[there](tutorial.md#no-such-heading)\n", encoding="utf-8")
    built = build(copy, tmp_path / "site")
    assert built.returncode == 1 and "no-such-heading" in built.stdout + built.stderr
