"""The report's panels: the validity card, the evidence grid's curves and areas, and a judgement, good or bad."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.runs import write_run

from qilin_tasks.cli import main
from qilin_tasks.judge.checks import check

BAD = "This judge is bad"
RUNG = {"value": 0.985, "low": 0.98, "high": 0.99, "n": 40}
#: A reader of the first place: the cited note's answer is found where it stands there, or where all notes are cited.
GRID = {(0, "first"): 1.0, (1, "first"): 0.0, **{(0.5, place): float(place == "first") for place in ("first", "last")}}
DOCUMENTS = 30


def card() -> dict[str, Any]:
    from qilin_tasks.validity.edits import EDITS

    ladder = dict.fromkeys(EDITS, RUNG)
    agreement = {"spearman": 0.515, "low": 0.4, "high": 0.6, "minus_baseline": None}
    return {
        "texts": 40,
        "labels": 280,
        "pairs": 140,
        "people": 0.69,
        "baseline": "rouge_l",
        "metrics": {"rouge_l": {"ladder": ladder, **agreement}, "<img>": {**agreement}},
    }


def judgement(*, controls: float) -> dict[str, Any]:
    measured = {"value": 0.6, "low": 0.5, "high": 0.7, "n": 40}
    row = {
        "task": "qilin_dqa_bm25",
        "models": ["m<b>"],
        "answers": 40,
        "scored": 38,
        "values": {"nuggets_all": measured},
        "labels": 12,
        "corrected": {**measured, "value": 0.41},
        "people": measured,
    }
    checks = [check("controls", controls), check("people_kappa", 0.7)]
    return {
        "format": 1,
        "mode": "nuggets",
        "signature": "judge|x",
        "judge": "tiny",
        "main": "nuggets_all",
        "documents": 40,
        "cut": 0,
        "rows": [row],
        "checks": checks,
        "bad": [one["name"] for one in checks if not one["passed"]],
    }


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for (share, place), value in GRID.items():
        docs = [{"doc_key": i, "query": f"问{i}", "reference": f"答{i}", "notes": []} for i in range(DOCUMENTS)]
        task = f"qilin_dqa_grid_n5_d{100 * share:g}_{place}"
        write_run(
            tmp_path / "runs" / task,
            model="reader",
            task=task,
            docs=docs,
            responses=["答"] * DOCUMENTS,
            scores=[{"rouge_l": value, "fact_f1": value} for _ in docs],
            signature=f"dqa_grid|notes:5|distractors:{share:g}|place:{place}|data:d|n:{DOCUMENTS}|v:2.0",
            metadata={"notes": 5, "distractors": share, "place": place},
        )
    return tmp_path / "runs"


def report(runs: Path, *options: str) -> str:
    out = runs.parent / "report"
    assert main(["report", str(runs), "--out", str(out), "--resamples", "100", *options]) == 0
    return (out / "index.html").read_text(encoding="utf-8")


def stored(path: Path, made: dict[str, Any]) -> str:
    path.write_text(json.dumps(made), encoding="utf-8")
    return str(path)


def test_a_readers_curves_have_their_analytic_area(runs: Path) -> None:
    section = re.search(r'<section id="grid">.*?</section>', report(runs), re.DOTALL)
    assert section is not None
    shown = section[0]
    # (0, 1), (.5, 1), (1, 0) and (0, 1), (.5, 0), (1, 0): areas 3/4 and 1/4.
    for place, area in (("first", "0.7500"), ("last", "0.2500")):
        assert f"<td>cited {place}, reader</td><td>{area} [{area}, {area}]</td><td>{DOCUMENTS}</td>" in shown
    assert "cited middle" not in shown
    assert "rouge_l by share of distractors, 5 notes" in shown


def test_each_metric_leads_to_its_entry_on_the_card(runs: Path, tmp_path: Path) -> None:
    page = report(runs, "--validity", stored(tmp_path / "validity.json", card()))
    assert 'id="validity-rouge_l"' in page and 'href="#validity-rouge_l"' in page
    assert 'href="#validity-fact_f1"' not in page
    assert "0.985 [0.980, 0.990]" in page and "One annotator with another: 0.690" in page
    assert "<img>" not in page


@pytest.mark.parametrize(("controls", "bad"), [(0.5, True), (0.95, False)])
def test_a_judgement_says_whether_its_judge_is_bad(runs: Path, tmp_path: Path, controls: float, bad: bool) -> None:
    page = report(runs, "--judged", stored(tmp_path / "judgement-nuggets.json", judgement(controls=controls)))
    assert (BAD in page) == bad
    assert ('<p class="warning">This judge is bad' in page) == bad
    assert "0.410 (0.500 to 0.700), 12 labels" in page and "kappa with people" in page
    assert "m<b>" not in page and "m&lt;b&gt;" in page


@pytest.mark.parametrize(("option", "command"), [("--validity", "validate --json"), ("--judged", "qilin-tasks judge")])
@pytest.mark.parametrize("text", ["{", "[]", '{"texts": 1}'])
def test_a_file_that_is_none_is_named(
    runs: Path, tmp_path: Path, option: str, command: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    assert main(["report", str(runs), "--out", str(tmp_path / "report"), option, str(path)]) != 0
    said = capsys.readouterr().err
    assert str(path) in said and command in said
