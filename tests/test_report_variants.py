"""Other prompts and own systems on a report's board: beside the models where data and metrics are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs import write_run

from qilin_tasks.report.analysis import analyse
from qilin_tasks.report.collect import Board, boards_of
from qilin_tasks.report.standings import standings
from qilin_tasks.report.tables import chosen
from qilin_tasks.results.reader import find_results

DOCS = [{"doc_key": key, "query": "q", "reference": "r"} for key in range(40)]
USUAL = {"ctx": "bm25", "note": "600", "prompt": "aaaa", "gen": "g", "data": "d", "n": "40", "v": "1.0"}


def run(
    folder: Path, model: str, quality: float, *, task: str = "qilin_dqa_bm25", source: str = "vllm", **parts: str
) -> None:
    signed = {name: part for name, part in (USUAL | parts).items() if part}
    write_run(
        folder / task / model,
        model=model,
        task=task,
        docs=DOCS,
        responses=["x"] * len(DOCS),
        scores=[{"rouge_l": quality + key % 5 / 100} for key in range(len(DOCS))],
        signature="|".join(["dqa", *(f"{name}:{part}" for name, part in signed.items())]),
        metadata={"context": "bm25"},
        source=source,
    )


def board_of(folder: Path) -> Board:
    (board,) = boards_of(find_results([folder]))
    return board


def ranks(board: Board) -> dict[str, str]:
    analysis = analyse(board, resamples=300, seed=1)
    return {row.name: row.ranks for row in standings(board, analysis, chosen(board), "rouge_l") if row.kind == "model"}


def test_another_prompt_is_a_system_of_its_own_and_is_tested(tmp_path: Path) -> None:
    """A task of another name that differs in its prompt alone: its models stand beside the first task's."""
    run(tmp_path, "m", 0.3)
    run(tmp_path, "other", 0.2)
    run(tmp_path, "m", 0.5, task="my_dqa_bm25", prompt="bbbb")
    run(tmp_path, "lead", 0.1, source="qilin-baseline", prompt="", gen="")
    run(tmp_path, "lead", 0.1, task="my_dqa_bm25", source="qilin-baseline", prompt="", gen="")
    board = board_of(tmp_path)
    assert board.name == "qilin_dqa"
    assert ranks(board) == {"m (my_dqa_bm25)": "1", "m": "2", "other": "3"}
    assert board.models[-1:] == ["lead"] and len(board.models) == 4
    assert [text for text in board.warnings if "my_dqa_bm25 is qilin_dqa_bm25 with another prompt" in text]


def test_another_prompt_under_the_same_name_is_told_by_its_digest(tmp_path: Path) -> None:
    run(tmp_path, "m", 0.3)
    run(tmp_path, "other", 0.2)
    run(tmp_path, "third", 0.4, prompt="bbbb")
    board = board_of(tmp_path)
    assert ranks(board) == {"third (prompt bbbb)": "1", "m": "2", "other": "3"}
    assert any("prompt bbbb instead of aaaa" in text for text in board.warnings)


def test_answers_of_an_own_system_are_tested_against_models(tmp_path: Path) -> None:
    run(tmp_path, "m", 0.3)
    run(tmp_path, "my rag", 0.5, source="qilin-tasks score", prompt="", gen="", given="abcd")
    assert ranks(board_of(tmp_path)) == {"my rag": "1", "m": "2"}


@pytest.mark.parametrize(("part", "value"), [("note", "300"), ("gen", "h"), ("v", "2.0")])
def test_what_differs_in_more_than_the_prompt_stands_apart_with_a_reason(tmp_path: Path, part: str, value: str) -> None:
    run(tmp_path, "m", 0.3)
    run(tmp_path, "other", 0.2)
    run(tmp_path, "m", 0.5, task="my_dqa_bm25", **{"prompt": "bbbb", part: value})
    boards = {board.name: board for board in boards_of(find_results([tmp_path]))}
    assert list(boards) == ["my_dqa", "qilin_dqa"]
    assert boards["my_dqa"].warnings == [
        f"my_dqa_bm25 is no variant of qilin_dqa_bm25: {part} {value} instead of {USUAL[part]}"
    ]
    assert boards["qilin_dqa"].models == ["m", "other"]


def test_a_task_over_other_data_needs_no_reason(tmp_path: Path) -> None:
    run(tmp_path, "m", 0.3)
    run(tmp_path, "m", 0.5, task="my_dqa_bm25", data="e")
    assert [(board.name, board.warnings) for board in boards_of(find_results([tmp_path]))] == [
        ("my_dqa", []),
        ("qilin_dqa", []),
    ]


def test_a_ranking_of_other_requests_is_left_out_with_a_reason(tmp_path: Path) -> None:
    for name, family, keys in (("model", "qilin-listwise", range(40)), ("mine", "qilin-run", range(10, 60))):
        docs = [{"doc_key": key, "query": "q"} for key in keys]
        write_run(
            tmp_path / name,
            model=name,
            task="qilin_search_run" if name == "mine" else "qilin_search_listwise",
            docs=docs,
            responses=["[1]"] * len(docs),
            scores=[{"mrr@10": key % 7 / 10} for key in keys],
            signature=f"{family}|config:search_test|labels:l",
            metadata={"config": "search_test"},
        )
    boards = {board.name: board for board in boards_of(find_results([tmp_path]))}
    assert boards["qilin_search_listwise"].models == ["model"]
    assert "mine is not beside qilin_search_listwise: of its 50 requests the models were asked 30, and 10 others" in (
        boards["qilin_search_listwise"].warnings
    )
