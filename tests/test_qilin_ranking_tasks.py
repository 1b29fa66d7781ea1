from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from support.evaluation import ScriptedModel, defaults, evaluate, metric
from support.ranking_folder import search_row, write_ranking

from qilin_tasks.errors import DataError
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.metrics.ranking import QILIN_MEASURES
from qilin_tasks.parsing.rankings import render_ranking
from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.scorer import ListwiseScorer, PointwiseScorer
from qilin_tasks.ranking.settings import ListwiseSettings, RankingSettings

TASKS = [f"qilin_{kind}_{way}" for kind in ("search", "recommendation") for way in ("listwise", "pointwise")]
LISTWISE, POINTWISE = "qilin_search_listwise", "qilin_search_pointwise"


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")


DEFAULTS = {**defaults("qilin/_ranking_yaml"), "config": "search_test"}


def score_listwise(docs: list[dict[str, Any]], answers: list[list[Any]]) -> list[dict[str, float]]:
    return ListwiseScorer(ListwiseSettings.from_metadata(DEFAULTS)).score(docs, answers)


def score_pointwise(docs: list[dict[str, Any]], answers: list[list[Any]]) -> list[dict[str, float]]:
    return PointwiseScorer(RankingSettings.from_metadata(DEFAULTS)).score(docs, answers)


# Baselines, through the harness


@pytest.fixture(scope="module")
def baselines() -> dict[str, dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        return {
            strategy: evaluate(["qilin_ranking"], QilinBaseline(strategy=strategy), log_samples=True)
            for strategy in ("oracle", "first_stage", "random", "constant")
        }


@pytest.mark.parametrize("task", TASKS)
def test_the_baselines_stand_in_order(baselines: dict[str, dict[str, Any]], task: str) -> None:
    value = {strategy: metric(results, task, "mrr@10") for strategy, results in baselines.items()}
    assert value["oracle"] == 1
    assert value["oracle"] > value["first_stage"]
    assert value["oracle"] > value["random"]
    for results in baselines.values():
        assert metric(results, task, "valid_rate") == 1
        for measure in QILIN_MEASURES:
            assert metric(results, task, measure) == metric(results, task, f"{measure}_repaired")


@pytest.mark.parametrize("kind", ["search", "recommendation"])
def test_both_ways_of_asking_score_a_baseline_alike(baselines: dict[str, dict[str, Any]], kind: str) -> None:
    for results in baselines.values():
        for measure in QILIN_MEASURES:
            listwise = metric(results, f"qilin_{kind}_listwise", measure)
            assert listwise == pytest.approx(metric(results, f"qilin_{kind}_pointwise", measure), abs=1e-12)


def test_groups_show_the_mean_of_their_tasks(baselines: dict[str, dict[str, Any]]) -> None:
    for results in baselines.values():
        for kind in ("search", "recommendation"):
            for measure in ("mrr@10", "map@10"):
                ways = [metric(results, f"qilin_{kind}_{way}", measure) for way in ("listwise", "pointwise")]
                assert results["groups"][f"qilin_{kind}"][f"{measure},none"] == pytest.approx(sum(ways) / 2)
                everything = [metric(results, task, measure) for task in TASKS]
                assert results["groups"]["qilin_ranking"][f"{measure},none"] == pytest.approx(sum(everything) / 4)


def test_results_carry_their_recipe(baselines: dict[str, dict[str, Any]]) -> None:
    signatures = {task: baselines["oracle"]["configs"][task]["metadata"]["signature"] for task in TASKS}
    assert len(set(signatures.values())) == 4
    assert re.fullmatch(
        r"qilin-listwise\|config:search_test\|rows:1000\|shuffle:42\|note:200\|query:300\|shown:notes-1\|total:8000"
        r"\|window:60\|merge:pairs-1\|prompt:\w{8}\|gen:\w{8}\|shots:0\|chat:0\|data:\w{12}\|n:\d+\|v:1.0\|code:.+",
        signatures[LISTWISE],
    )
    assert "|history:20|" in signatures["qilin_recommendation_pointwise"]


def test_prompts_give_nothing_away(baselines: dict[str, dict[str, Any]]) -> None:
    for task in TASKS:
        for row in baselines["oracle"]["samples"][task]:
            prompt = row["arguments"][0][0]
            assert prompt == prompt.rstrip()
            assert not re.search(r"点赞|浏览|曝光|位置|None|nan", prompt.replace("点赞收藏", ""))
            assert set(row["doc"]["candidates"][0]) == {"note_idx", "title", "content"}


def test_the_query_comes_before_the_note(baselines: dict[str, dict[str, Any]]) -> None:
    for row in baselines["oracle"]["samples"][POINTWISE]:
        prompts = [argument[0] for argument in row["arguments"]]
        n = len(row["doc"]["candidates"])
        assert prompts[:n] == prompts[n:]
        shared = prompts[0][: prompts[0].index("标题：")]
        assert row["doc"]["query"] in shared
        assert all(prompt.startswith(shared) for prompt in prompts)
        assert [argument[1] for argument in row["arguments"]] == ["是"] * n + ["否"] * n


def test_recommendation_shows_history_and_pseudo_query(baselines: dict[str, dict[str, Any]]) -> None:
    for row in baselines["oracle"]["samples"]["qilin_recommendation_listwise"]:
        prompt = row["arguments"][0][0]
        assert all(title in prompt for title in row["doc"]["history"])
        assert row["doc"]["query"] in prompt


# Answers


def test_strict_and_repaired_and_the_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [search_row(i, [4 * i + j for j in range(4)], [4 * i + j for j in range(4)]) for i in range(4)]
    rows.append(search_row(4, [0, 1, 2, 3], [0]))
    monkeypatch.setenv("QILIN_DATA", str(write_ranking(tmp_path, notes=16, search=rows)))
    answers = ["[2] > [1] > [3] > [4]", "[2] > [2] > [9]", "I can't.", "<think>[1] > [2]", "unused"]

    def answer(request: Any) -> str:
        doc = request.doc
        if doc["doc_key"] == 4:
            return render_ranking([i for i in (1, 2, 3, 4) if i not in doc["relevant"]])
        return answers[doc["doc_key"]]

    model = ScriptedModel(answer)
    results = evaluate([LISTWISE], model, log_samples=True)
    rows_by_key = {row["doc"]["doc_key"]: row for row in results["samples"][LISTWISE]}
    assert [rows_by_key[i]["mrr@10"] for i in range(5)] == [1, 1, 0, 0, 0]
    assert [rows_by_key[i]["mrr@10_repaired"] for i in range(5)] == [1, 1, 1, 1, 1 / 4]
    assert [rows_by_key[i]["recall@10"] for i in range(5)] == [1, 1 / 4, 0, 0, 0]
    assert [rows_by_key[i]["valid_rate"] for i in range(5)] == [1, 0, 0, 0, 0]
    assert [rows_by_key[i]["duplicate_rate"] for i in range(5)] == [0, 1 / 3, 0, 0, 0]
    assert [rows_by_key[i]["invented_rate"] for i in range(5)] == [0, 1 / 3, 0, 0, 0]
    assert [rows_by_key[i]["missing_rate"] for i in range(5)] == [0, 3 / 4, 1, 1, 1 / 4]
    assert [rows_by_key[i]["unfinished_reasoning_rate"] for i in range(5)] == [0, 0, 0, 1, 0]
    assert rows_by_key[3]["filtered_resps"] == [""]


def test_a_chat_template_that_opens_the_reasoning(sample: None) -> None:
    class Thinking(ScriptedModel):
        def apply_chat_template(self, chat_history: Any, add_generation_prompt: bool = True) -> str:
            return super().apply_chat_template(chat_history, add_generation_prompt) + "<think>\n"

    unfinished = evaluate([LISTWISE], Thinking("[1] > [2] seems right"), apply_chat_template=True, limit=3)
    assert metric(unfinished, LISTWISE, "unfinished_reasoning_rate") == 1
    finished = evaluate([LISTWISE], Thinking("[2] > [1]?</think>\n[1] > [2]"), apply_chat_template=True, limit=3)
    assert metric(finished, LISTWISE, "unfinished_reasoning_rate") == 0
    assert metric(finished, LISTWISE, "missing_rate") > 0


@pytest.mark.parametrize("task", TASKS)
def test_a_lone_prompt_makes_the_requests_of_the_whole_document(sample: None, task: str) -> None:
    """Callers of the harness's interface hand over `doc_to_text(doc)`, its own tests of new tasks among them."""
    from qilin_tasks.harness.task_manager import load, task_manager

    settings = {"window": 4} if task.endswith("listwise") else {}
    built = load(task, task_manager([task], metadata=settings))
    several = 0
    for doc in built.eval_docs:
        whole = built.construct_requests(doc, built.fewshot_context(doc, 0))
        lone = built.construct_requests(doc, built.doc_to_text(doc))
        assert [request.args for request in lone] == [request.args for request in whole]
        several += len({request.args[0] for request in whole}) > 1
    assert several > 0


def test_long_lists_are_asked_in_windows_and_the_oracle_stays_perfect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(5)
    rows = [search_row(i, range(n), chance.sample(range(n), 1 + n // 4)) for i, n in enumerate((5, 8, 9, 40, 185))]
    monkeypatch.setenv("QILIN_DATA", str(write_ranking(tmp_path, notes=185, search=rows)))
    results = evaluate(
        [LISTWISE],
        QilinBaseline(strategy="oracle"),
        metadata={"window": 8, "context_chars": 400},
        log_samples=True,
    )
    by_key = {row["doc"]["doc_key"]: row for row in results["samples"][LISTWISE]}
    assert [by_key[i]["windows"] for i in range(5)] == [1, 1, 3, 45, 1081]
    assert [len(by_key[i]["resps"]) for i in range(5)] == [1, 1, 3, 45, 1081]
    for measure in ("mrr@10", "map@10", "map@100", "ndcg@10", "map_paper@100"):
        assert metric(results, LISTWISE, measure) == pytest.approx(1)


# Pointwise


def doc(n: int, relevant: list[int], *, key: int = 0) -> dict[str, Any]:
    return {
        "doc_key": key,
        "candidates": [{}] * n,
        "windows": [list(range(1, n + 1))],
        "relevant": relevant,
        "n_relevant": len(relevant),
        "candidates_trimmed": 0,
    }


def test_yes_minus_no_ranks_and_ties_keep_the_shown_order() -> None:
    yes, no = [-1.0, -5.0, -2.0, -3.0], [-1.0, -9.0, -2.0, -1.0]  # differences 0, 4, 0, -2
    pairs = [(value, False) for value in yes + no]
    assert score_pointwise([doc(4, [2])], [pairs])[0]["mrr@10"] == 1
    assert score_pointwise([doc(4, [3])], [pairs])[0]["mrr@10"] == 1 / 3
    assert score_pointwise([doc(4, [4])], [pairs])[0]["mrr@10"] == 1 / 4
    infinite = [(-math.inf, False)] * 4 + [(-math.inf, False)] * 3 + [(-1.0, False)]
    assert score_pointwise([doc(4, [1])], [infinite])[0]["mrr@10"] == 1


@pytest.mark.parametrize("pairs", [[(math.nan, False), (-1.0, False)], [(-1.0, False)], []])
def test_log_likelihoods_that_are_none_stop(pairs: list[Any]) -> None:
    with pytest.raises(DataError, match=r"document 7: .* each must be a number, so the engine failed"):
        score_pointwise([doc(1, [1], key=7)], [pairs])


# Chance


def chance_of_mrr(n: int, hits: int, *, k: int) -> float:
    """Expected reciprocal rank within k of the best of `hits` items in a uniformly random order of n."""
    none_before, total = 1.0, 0.0
    for rank in range(1, min(n, k) + 1):
        here = min(hits / (n - rank + 1), 1.0)
        total += none_before * here / rank
        none_before *= 1 - here
    return total


def chance_of_map(n: int, hits: int, *, k: int) -> float:
    """Expected official AP@k: the sum over ranks of P(hit there) times the expected precision given it."""
    if n == 1:
        return 1.0
    total = sum((hits / n) * (1 + (rank - 1) * (hits - 1) / (n - 1)) / rank for rank in range(1, min(n, k) + 1))
    return total / min(hits, k)


def test_the_closed_forms_are_right() -> None:
    from itertools import permutations

    from qilin_tasks.metrics.ranking import score_ranking

    for n, hits in ((4, 1), (5, 2), (6, 3), (6, 6)):
        orders = [
            score_ranking(order, set(range(hits)), measures=("mrr@3", "map@4")) for order in permutations(range(n))
        ]
        assert sum(o["mrr@3"] for o in orders) / len(orders) == pytest.approx(chance_of_mrr(n, hits, k=3))
        assert sum(o["map@4"] for o in orders) / len(orders) == pytest.approx(chance_of_map(n, hits, k=4))


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """1,000 requests whose clicks fall on the first notes exposed, which also have the lowest ids."""
    chance = random.Random(11)
    rows = []
    for i in range(1000):
        notes = sorted(chance.sample(range(3000), chance.randint(20, 30)))
        rows.append(search_row(i, notes, notes[: chance.randint(1, 4)]))
    folder = write_ranking(tmp_path_factory.mktemp("thousand"), notes=3000, search=rows)
    return build_ranking(RankingSettings.from_metadata(DEFAULTS), spec=str(folder))


@pytest.mark.parametrize("way", ["listwise", "pointwise"])
@pytest.mark.parametrize(
    ("measure", "expectation", "k"), [("mrr@10", chance_of_mrr, 10), ("map@10", chance_of_map, 10)]
)
def test_a_constant_scorer_gets_what_chance_gives(
    thousand: list[dict[str, Any]], way: str, measure: str, expectation: Any, k: int
) -> None:
    assert len(thousand) == 1000
    if way == "listwise":
        rows = score_listwise(thousand, [[render_ranking(range(1, len(d["candidates"]) + 1))] for d in thousand])
    else:
        rows = score_pointwise(thousand, [[(-1.5, False)] * (2 * len(d["candidates"])) for d in thousand])
    differences = [
        row[measure] - expectation(len(d["candidates"]), len(d["relevant"]), k=k)
        for row, d in zip(rows, thousand, strict=True)
    ]
    mean = sum(differences) / 1000
    error = math.sqrt(sum((value - mean) ** 2 for value in differences) / 999 / 1000)
    assert abs(mean) < 3 * error


def test_documents_are_json(thousand: list[dict[str, Any]]) -> None:
    assert json.loads(json.dumps(thousand[0])) == thousand[0]
