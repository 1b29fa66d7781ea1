"""README and docs/data.md: short, with links that lead somewhere, numbers that come out, and an example that runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_the_readme_is_short(repo: Path) -> None:
    assert len((repo / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_links_of_all_pages_lead_to_files(repo: Path) -> None:
    pages = [*repo.glob("*.md"), *repo.glob("docs/**/*.md"), *repo.glob("lm_eval_tasks/*/*.md")]
    broken = [
        f"{page.relative_to(repo)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not target.startswith(("http", "mailto:")) and not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_table_of_results_is_that_of_the_stored_run(repo: Path) -> None:
    stored = json.loads((repo / "docs" / "results" / "notes_dqa.json").read_text("utf-8"))
    cells = {
        (row["model"], row["context"]): " to ".join(f"{row[name]:.3f}" for name in ("low", "high"))
        for row in stored["result"]["rows"]
    }
    values = {(row["model"], row["context"]): f"{row['rouge_l']:.3f}" for row in stored["result"]["rows"]}
    text = (repo / "README.md").read_text("utf-8")
    assert stored["date"] in text and f"{stored['result']['questions']} questions" in text
    for model in ("gemma-3-270m", "SmolLM2-135M-Instruct", "lead"):
        shown = [f"{values[model, name]} ({cells[model, name]})" for name in ("none", "BM25", "E5", "cited")]
        assert f"| {model} | {' | '.join(shown)} |".replace("0.", ".") in text


def test_the_wrong_numbers_are_those_of_the_script(repo: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "scripts/wrong_numbers.py"],
        cwd=repo,
        env={"PYTHONPATH": str(repo), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    readme = (repo / "README.md").read_text(encoding="utf-8").splitlines()
    rows = ran.stdout.splitlines()
    assert len(rows) == 5
    assert [row for row in rows if row not in readme] == []


@pytest.fixture
def three_rows(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the example of docs/data.md writes."""
    (code,) = re.findall(r"```python\n(.*?)```", (repo / "docs" / "data.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {"folder": tmp_path})
    monkeypatch.setenv("QILIN_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("task", ["qilin_dqa_na", "qilin_dqa_oracle"])
def test_three_rows_of_ones_own_run(three_rows: Path, task: str) -> None:
    from qilin_tasks import evaluate

    options: dict[str, Any] = {"model_args": {"strategy": "reference"}, "metadata": {"bertscore": "off"}}
    results = evaluate(task, "qilin-baseline", **options)
    assert results["results"][task]["rouge_l,none"] == 1.0
    assert [sample["doc"]["query"] for sample in results["samples"][task]] == [
        "饺子煮多久",
        "猫能喝牛奶吗",
        "防晒霜怎么选",
    ]


def test_doctor_is_content_with_three_rows(three_rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from qilin_tasks.doctor.data import dqa_data

    (finding,) = dqa_data()
    assert finding.status == "ok" and "3 answered" in finding.detail


def test_what_the_page_calls_optional_is_optional_and_nothing_else(repo: Path) -> None:
    from qilin_tasks.dqa.documents import ACTION_COLUMNS, ROW_COLUMNS, RUN_COLUMNS, SEARCH_ID

    page = (repo / "docs" / "data.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    optional = {name for row in rows if "left out" in row for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert optional == {SEARCH_ID, *ACTION_COLUMNS}
    assert named == {*ROW_COLUMNS, *RUN_COLUMNS.values(), *optional}
