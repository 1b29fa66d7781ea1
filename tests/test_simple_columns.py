"""`mrr_simple` and its like: what RankLLM's rule makes of the same answers, in the samples and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.comparing import arguments, main
from support.evaluation import ScriptedModel, evaluate
from support.openai_server import chat_server
from test_rescore import again, likelihood, save

from qilin_tasks.results.asides import add_asides
from qilin_tasks.results.reader import TaskResult, find_results

#: Our parser finds the chain; the simple rule begins with the number of the prose.
ANSWER = "看了前3篇：[2] > [1]"
RULE = [3, 2, 1]


def lines(result: TaskResult) -> list[dict[str, Any]]:
    assert result.samples_path is not None
    return [json.loads(line) for line in result.samples_path.read_text(encoding="utf-8").splitlines()]


def expected(doc: dict[str, Any]) -> float:
    """By hand: the rule's ids, then the rest in shown order; the first relevant one within ten."""
    n = len(doc["candidates"])
    order = [i for i in RULE if i <= n] + [i for i in range(1, n + 1) if i not in RULE]
    ranks = [rank for rank, i in enumerate(order, 1) if i in doc["relevant"]]
    return 1 / ranks[0] if ranks and ranks[0] <= 10 else 0.0


@pytest.fixture(autouse=True)
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("REQA_DATA", "sample")


def test_rescore_writes_what_the_simple_rule_gives(tmp_path: Path) -> None:
    before = save(tmp_path, "qilin_search_listwise", ScriptedModel(lambda request: ANSWER))
    done = again(before, {})
    found = lines(done)
    assert [line["mrr@10_simple"] for line in found] == pytest.approx([expected(line["doc"]) for line in found])
    assert any(line["mrr@10_simple"] != line["mrr@10_repaired"] for line in found)
    assert not [name for line in found for name in line["metrics"] if "simple" in name]
    assert not [name for name in done.values if "simple" in name]


def test_an_unclosed_reasoning_before_the_answer_is_read_the_same_way(tmp_path: Path) -> None:
    done = again(save(tmp_path, "qilin_search_listwise", ScriptedModel(lambda r: f"[1] [2]</think>{ANSWER}")), {})
    found = lines(done)
    assert [line["mrr@10_simple"] for line in found] == pytest.approx([expected(line["doc"]) for line in found])


@pytest.mark.parametrize(
    ("task", "answer", "columns"),
    [
        ("reqa_squad", lambda r: ANSWER, ["mrr_simple"]),
        ("qilin_search_listwise", lambda r: ANSWER, ["mrr@10_simple", "map@10_simple"]),
        ("qilin_search_pointwise", likelihood, []),
        ("reqa_squad_likelihood", likelihood, []),
        ("qilin_dqa_na", lambda r: ANSWER, []),
    ],
)
def test_only_written_rankings_have_them(task: str, answer: Any, columns: list[str]) -> None:
    results = evaluate([task], ScriptedModel(answer), metadata={"bertscore": "off"})
    samples = results["samples"][task]
    before = [set(line) for line in samples]
    add_asides(samples, results["configs"][task]["metadata"])
    assert [sorted(set(line) - old) for line, old in zip(samples, before, strict=True)] == [sorted(columns)] * len(
        before
    )


@pytest.mark.slow
def test_compare_writes_them(tmp_path: Path) -> None:
    with chat_server() as server:
        model = f"local-chat-completions:name=m,model=m,base_url={server.url},num_concurrent=2"
        assert main(arguments(tmp_path, model, tasks="qilin_search_listwise,qilin_dqa_na")) == 0
    (result,) = (found for found in find_results([tmp_path]) if found.task == "qilin_search_listwise")
    assert all("mrr@10_simple" in line for line in lines(result))
