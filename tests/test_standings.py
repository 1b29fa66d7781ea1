"""Who is ahead in a report: ranks that the tests allow, ties, one sentence; on the page from the best on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from support.runs import write_run

from qilin_tasks.report.analysis import Analysis, analyse
from qilin_tasks.report.build import build
from qilin_tasks.report.collect import Board, boards_of
from qilin_tasks.report.standings import sentence, standings
from qilin_tasks.report.standings_page import standings_section
from qilin_tasks.report.tables import chosen
from qilin_tasks.results.reader import find_results

#: Quality of each model; b and c differ by less than the noise.
QUALITY = {"d": 0.2, "b": 0.5, "a": 0.7, "c": 0.501}
HOSTILE = "<img src=x onerror=alert(1)>"


def make(folder: Path, quality: dict[str, float], *, metric: str = "rouge_l", lower: bool = False) -> Path:
    docs = [{"doc_key": i, "query": f"q{i}", "reference": "r", "notes": []} for i in range(80)]
    for place, (model, value) in enumerate(quality.items()):
        noise = random.Random(model)
        scores = [{metric: min(1.0, max(0.0, value + noise.gauss(0, 0.05)))} for _ in docs]
        write_run(
            folder / f"m{place}",
            model=model,
            task="qilin_dqa_bm25",
            docs=docs,
            responses=["a" for _ in docs],
            scores=scores,
            metadata={"context": "bm25"},
            source="qilin-baseline" if model == "lead" else "vllm",
            lower_is_better=[metric] if lower else [],
        )
    return folder


def board_of(folder: Path) -> tuple[Board, Analysis]:
    (board,) = boards_of(find_results([folder]))
    return board, analyse(board, resamples=500, seed=1)


def test_ranks_are_those_that_the_tests_allow(tmp_path: Path) -> None:
    board, analysis = board_of(make(tmp_path, {**QUALITY, "lead": 0.9}))
    rows = standings(board, analysis, chosen(board), "rouge_l")
    ours = [(row.name, row.ranks, row.tied) for row in rows if row.kind == "model"]
    assert ours[0] == ("a", "1", False)
    assert {name: ranks for name, ranks, _ in ours} == {"a": "1", "b": "2–3", "c": "2–3", "d": "4"}
    assert [tied for _, _, tied in ours] == [False, False, True, False]
    # A baseline has a bar and no rank, however good it is.
    assert [(row.name, row.ranks) for row in rows if row.kind == "baseline"] == [("lead", "")]
    said = sentence(rows, analysis, chosen(board), "rouge_l")
    second = ours[1][0]
    assert re.match(rf"a is ahead of {second} by 0\.\d+ \[0\.\d+, 0\.\d+\]; [bc] can't be told from {second}\.", said)


def test_a_tie_in_front_has_no_winner(tmp_path: Path) -> None:
    board, analysis = board_of(make(tmp_path, {"b": 0.5, "c": 0.501, "d": 0.2}))
    rows = standings(board, analysis, chosen(board), "rouge_l")
    assert re.fullmatch(
        r"[bc] is in front, but can't be told from [bc]\.", sentence(rows, analysis, chosen(board), "rouge_l")
    )


def test_the_lowest_is_ahead_where_lower_is_better(tmp_path: Path) -> None:
    board, analysis = board_of(make(tmp_path, {"a": 0.7, "d": 0.2}, metric="cost", lower=True))
    rows = standings(board, analysis, chosen(board), "cost")
    assert [(row.name, row.ranks) for row in rows if row.kind == "model"] == [("d", "1"), ("a", "2")]
    said = sentence(rows, analysis, chosen(board), "cost")
    assert re.fullmatch(r"d is better than a: lower by 0\.\d+ \[0\.\d+, 0\.\d+\]\.", said)


@pytest.mark.parametrize("quality", [{"a": 0.5}, {"lead": 0.5}])
def test_one_row_is_no_race(quality: dict[str, float], tmp_path: Path) -> None:
    board, analysis = board_of(make(tmp_path, quality))
    rows = standings(board, analysis, chosen(board), "rouge_l")
    assert {row.ranks for row in rows} == {""}
    said = sentence(rows, analysis, chosen(board), "rouge_l")
    assert said == ("a has nothing to be compared with." if "a" in quality else "")


def test_the_page_opens_with_it_and_names_are_text(tmp_path: Path) -> None:
    folder = make(tmp_path / "runs", {"d": 0.2, HOSTILE: 0.7})
    board, analysis = board_of(folder)
    shown = "".join(standings_section(board, analysis))
    assert HOSTILE not in shown and "&lt;img" in shown
    build([folder], tmp_path / "out", title="t", resamples=200, seed=1)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert page.index("is ahead of d by") < page.index('<table class="sortable"')
    assert "is ahead of d by" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
