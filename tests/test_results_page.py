"""`make results`: steps are kept as they come, and the page says what their intervals carry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPO = Path(__file__).resolve().parents[1]
RESULTS = REPO / "benchmarks" / "results"
sys.path.append(str(RESULTS))

import layers_table  # noqa: E402
import make  # noqa: E402
import page  # noqa: E402
import steps  # noqa: E402


def row(system: str, *, low: float, high: float) -> dict[str, object]:
    return {
        "system": system, "mrr": 0.5, "low": 0.4, "high": 0.6,
        "ranknet_minus": (low + high) / 2, "minus_low": low, "minus_high": high,
    }  # fmt: skip


def kept(*, tuned: tuple[float, float], dense: tuple[float, float] = (0.01, 0.02)) -> steps.StoredStep:
    rows = [
        row("BM25", low=0.01, high=0.03),
        row("dense", low=dense[0], high=dense[1]),
        row("weighted sum (tuned)", low=tuned[0], high=tuned[1]),
        {"system": "RankNet", "mrr": 0.55, "low": 0.5, "high": 0.6},
    ]
    seeds = {"weighted sum (tuned)": [0.5, 0.5], "RankNet": [0.54, 0.56]}
    result = {"questions": 1187, "pool": 1173, "paragraphs": 240, "rows": rows, "seeds": seeds}
    return {"command": ["python", "benchmarks/mrrank.py"], "date": "2026-12-03", "result": result}


@pytest.mark.parametrize(
    ("tuned", "said"),
    [
        ((0.001, 0.003), "on every set"),
        ((0.0, 0.003), "on 0 of 1 sets: on the others a plain weighted sum of min-max scores is better or"),
        ((-0.003, -0.001), "below weighted sum (tuned)"),
    ],
)
def test_the_verdict_follows_the_intervals(tuned: tuple[float, float], said: str) -> None:
    text = page.verdict({"fusion_xquad_en": kept(tuned=tuned)})
    assert said in text and "claim that the learned fusion beats each of its retrievers holds here" in text


def test_a_retriever_that_is_as_good_breaks_the_claim() -> None:
    text = page.verdict({"fusion_xquad_en": kept(tuned=(0.1, 0.2), dense=(-0.01, 0.02))})
    assert "does not hold everywhere" in text and "not to be told from E5" in text


def test_the_page_names_command_date_interval_and_what_is_missing() -> None:
    text, plots = page.page({"fusion_xquad_en": kept(tuned=(-0.003, -0.001))}, quick=False)
    assert "`python benchmarks/mrrank.py`, 2026-12-03, 1,187 questions, 1,173 sentences, 240 paragraphs." in text
    assert "| RankNet (0.540 to 0.560) | 0.550 | 0.500 to 0.600 |" in text
    assert "Not run yet:" in text and "no results" not in text
    assert ElementTree.fromstring(plots["fusion_xquad_en.svg"]).tag.endswith("svg")


def test_a_language_models_step_says_what_its_intervals_carry() -> None:
    rows = [{"system": name, "mrr": 0.5, "low": 0.4, "high": 0.6} for name in ("dense", "RankNet of three")]
    differences = [
        {"first": "RankNet of three", "second": "dense", "minus": 0.02, "low": low, "high": high}
        for low, high in ((0.01, 0.03), (-0.01, 0.03), (-0.03, -0.01))
    ]
    result = {
        "questions": 200, "pool": 1173, "paragraphs": 40, "candidates": 10, "rows": rows,
        "seeds": {"RankNet of three": [0.49, 0.51]}, "differences": differences,
    }  # fmt: skip
    stored: steps.StoredStep = {"command": ["python", "lm"], "date": "2026-12-03", "result": result}
    text, plots = page.page({"lm_xquad_en": stored, "lm_xquad_zh": stored}, quick=False)
    assert text.count("## A language model as retriever") == 1 and "the 10 first of RRF" in " ".join(text.split())
    assert "| RankNet of three (0.490 to 0.510) | 0.500 | 0.400 to 0.600 |" in text
    counts = "* RankNet of three against E5, 6 sets: above on 2, not to be told from on 2, below on 2."
    assert text.count(counts) == 1
    said = [line for line in text.splitlines() if line.startswith("* RankNet of three is")][:3]
    assert ["above E5" in said[0], "not to be told from E5" in said[1], "below E5" in said[2]] == [True] * 3
    assert set(plots) == {"lm_xquad_en.svg", "lm_xquad_zh.svg"}


def layer(number: int, *, negated: float, spearman: float) -> dict[str, float]:
    losses = {"loss negated": negated, "loss digits": 0.01, "loss shuffled": 0.3}
    people = {"spearman": spearman, "spearman low": spearman - 0.05, "spearman high": spearman + 0.05}
    return {"layer": number, **losses, **people, "unrelated": 0.5, "unrelated low": 0.4, "unrelated high": 0.6}


def test_the_layer_one_would_take_follows_people_and_then_negation() -> None:
    rows = [
        layer(1, negated=0.2, spearman=0.30),
        layer(2, negated=0.1, spearman=0.46),
        layer(3, negated=0.02, spearman=0.50),
    ]
    said = " ".join(layers_table.table({"rows": rows, "labels": 560}).split())
    assert "One would take layer 2: of the layers within that interval (2, 3)" in said
    assert "| 3 | 0.020 | 0.010 | 0.300 | 0.500 | 0.400 to 0.600 | 0.500 | 0.450 to 0.550 |" in said
    assert "one would take layer 1; they don't show" in layers_table.table({"rows": rows})


def test_a_step_is_kept_until_its_command_changes(tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    command = make.command_of(steps.STEPS["known_item"], data="d", quick=False)
    path.write_text(json.dumps({"command": command, "date": "2026-12-03", "result": {}}))
    assert make.stored(path, command) is not None
    assert make.stored(path, make.command_of(steps.STEPS["known_item"], data="d", quick=True)) is None


def test_the_page_in_docs_is_what_the_stored_steps_give() -> None:
    folder = REPO / "docs" / "results"
    found = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in steps.STEPS
        if (folder / f"{name}.json").is_file()
    }
    text, plots = page.page(found, quick=False)
    assert (REPO / "docs" / "results.md").read_text("utf-8") == text
    assert {name: (folder / name).read_text("utf-8") for name in plots} == plots


@pytest.mark.slow
def test_quick_results_go_on_where_they_stopped(tmp_path: Path, e5: Path, shared: Path) -> None:
    command = [
        sys.executable, str(RESULTS / "make.py"), "--quick", "--out", str(tmp_path), "--data", str(shared),
        "--only", "fusion_xquad_en",
    ]  # fmt: skip
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "fusion_xquad_en: python" in first.stdout and "fusion_xquad_en: python" not in again.stdout
    text = (tmp_path / "results.md").read_text("utf-8")
    assert "| RankNet" in text and "These are no results" in text
