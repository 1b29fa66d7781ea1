"""The ReQA tasks in the real harness: baselines on the sample and on real data, settings, signatures, groups."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from lm_eval.tasks import TaskManager
from support.evaluation import ScriptedModel, evaluate, metric

from qilin_tasks import tasks_folder
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.harness.baseline import QilinBaseline
from qilin_tasks.reqa import scorer as reqa
from qilin_tasks.reqa.baselines import LIKELIHOOD, LISTWISE
from qilin_tasks.reqa.documents import likelihood_documents
from qilin_tasks.reqa.pools import load_pool
from qilin_tasks.reqa.ranks import best_rank, document_scores
from qilin_tasks.reqa.settings import LikelihoodSettings
from qilin_tasks.retrieval.bm25 import BM25
from qilin_tasks.sources.reqa import SETS

FAMILIES = ("reqa_xquad_en", "reqa_xquad_en_likelihood", "reqa_xquad_en_generate")
READERS = tuple(f"reqa_xquad_en_reader_{context}" for context in ("na", "bm25", "oracle"))
OFF = {"bertscore": "off", "meteor": "off"}


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, shared: Path) -> Path:
    monkeypatch.setenv("REQA_DATA", str(shared / "data"))
    return shared


def baseline(strategy: str) -> QilinBaseline:
    return QilinBaseline(strategy=strategy)


def base_settings(family: str) -> dict[str, Any]:
    """The defaults of a base file."""
    text = (tasks_folder() / "reqa" / f"_reqa_{family}_yaml").read_text(encoding="utf-8")
    content = yaml.safe_load("\n".join(line for line in text.splitlines() if "!function" not in line))
    return dict(content["dataset_kwargs"])


def samples(results: dict[str, Any], task: str) -> list[dict[str, Any]]:
    return sorted(results["samples"][task], key=lambda row: row["doc_id"])


def test_yaml_files_are_what_the_table_writes(repo: Path) -> None:
    command = [sys.executable, str(repo / "scripts" / "write_reqa_yaml.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_task_is_found_and_every_set_has_its_families() -> None:
    names = set(TaskManager(include_path=str(tasks_folder() / "reqa"), include_defaults=False).all_tasks)
    for name in SETS:
        if SETS[name].split == "train":
            assert [task for task in names if task.startswith(f"reqa_{name}")] == [f"reqa_{name}"]
            continue
        assert {f"reqa_{name}", f"reqa_{name}_likelihood", f"reqa_{name}_generate"} <= names
        readers = {f"reqa_{name}_reader_{context}" for context in ("na", "bm25", "dense", "oracle")}
        assert readers <= names if not SETS[name].beir else not readers & names


@pytest.mark.parametrize("strategy", ["oracle", "first_stage", "random", "constant"])
def test_baselines_answer_every_family(sample: None, strategy: str) -> None:
    results = evaluate([*FAMILIES, *READERS], baseline(strategy), metadata=OFF)
    for task in FAMILIES:
        assert metric(results, task, "candidate_recall") == 1.0
        assert 0.0 <= metric(results, task, "mrr") <= 1.0
    if strategy == "oracle":
        assert [metric(results, task, "mrr") for task in FAMILIES] == [1.0, 1.0, 1.0]
        assert [metric(results, task, "em") for task in READERS] == [1.0, 1.0, 1.0]
    if strategy == "constant":
        assert metric(results, FAMILIES[2], "mrr") == 0.0
        assert metric(results, FAMILIES[2], "valid_rate") == 0.0


def test_a_task_reads_its_own_set_only(sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from qilin_tasks.reqa import pools

    read: list[str] = []
    original = pools.read_set
    monkeypatch.setattr(pools, "read_set", lambda name, **options: (read.append(name), original(name, **options))[1])
    pools._load.cache_clear()
    evaluate(["reqa_iapp", "reqa_iapp_generate", "reqa_iapp_reader_bm25"], baseline("oracle"), metadata=OFF)
    assert read == ["iapp"]


# Real data.


def test_oracle_on_real_data_is_the_ceiling(real: Path) -> None:
    results = evaluate(FAMILIES, baseline("oracle"), limit=120, log_samples=True)
    listwise, likelihood, generate = FAMILIES
    for task in (listwise, likelihood):
        ceiling = metric(results, task, "candidate_recall")
        assert 0.9 < ceiling < 1.0
        assert metric(results, task, "mrr") == pytest.approx(ceiling)
        assert metric(results, task, "r@1") == pytest.approx(ceiling)
    assert metric(results, generate, "mrr") == metric(results, generate, "doc_mrr") == 1.0
    assert metric(results, listwise, "valid_rate") == 1.0
    assert {len(row["doc"]["candidates"]) for row in samples(results, listwise)} == {20}
    # The paragraph is in the samples, for errors clustered by it.
    assert len({row["doc"]["paragraph"] for row in samples(results, listwise)}) > 10


def test_first_stage_on_real_data_is_bm25(real: Path) -> None:
    """Listwise and likelihood keep BM25's order of its top 20; the generated "sentence" is the question itself."""
    results = evaluate(FAMILIES, baseline("first_stage"), limit=120)
    pool = load_pool("xquad_en")
    index = BM25(pool.candidates, language="en")
    ranks = [best_rank(index.scores(q.text), q.gold) for q in pool.questions[:120]]
    owners = np.array(pool.owners)
    documents = [best_rank(document_scores(index.scores(q.text), owners), q.documents) for q in pool.questions[:120]]
    whole = np.mean([1 / rank for rank in ranks])
    top = np.mean([1 / rank if rank <= 20 else 0.0 for rank in ranks])
    assert metric(results, FAMILIES[2], "mrr_repaired") == pytest.approx(whole)
    assert metric(results, FAMILIES[2], "doc_mrr") == pytest.approx(np.mean([1 / rank for rank in documents]))
    assert metric(results, FAMILIES[2], "r@10") == np.mean([rank <= 10 for rank in ranks])
    for task in FAMILIES[:2]:
        assert metric(results, task, "mrr") == pytest.approx(top, abs=0.005)  # ties: by position there, averaged here


def chance(n: int, relevant: int) -> tuple[float, float]:
    """Mean and variance of 1/(rank of the first of `relevant` among n in random order), in closed form."""
    from math import comb

    share = [comb(n - rank, relevant - 1) / comb(n, relevant) for rank in range(1, n - relevant + 2)]
    mean = sum(p / rank for rank, p in enumerate(share, start=1))
    square = sum(p / rank**2 for rank, p in enumerate(share, start=1))
    return mean, square - mean**2


def test_chance_by_hand() -> None:
    assert chance(2, 1)[0] == pytest.approx(0.75)
    assert chance(3, 2)[0] == pytest.approx((1 + 1 + 1 / 2) / 3)


@pytest.mark.parametrize("strategy", ["random", "constant"])
def test_random_and_constant_get_what_chance_gives(real: Path, strategy: str) -> None:
    """All 1,187 questions: within four standard errors of the closed form, in both listwise and likelihood.

    A constant ranker lists the shuffled candidates as shown; constant scores are one tie, whose mean rank is less.
    """
    defaults = base_settings("likelihood") | {"set": "xquad_en"}
    settings = LikelihoodSettings.from_metadata(defaults)
    docs = likelihood_documents(settings)
    assert len(docs) == 1187
    expected = [chance(20, len(doc["relevant"])) if doc["relevant"] else (0.0, 0.0) for doc in docs]
    mean = np.mean([m for m, _ in expected])
    error = np.sqrt(sum(v for _, v in expected)) / len(docs)
    listwise = reqa.ListwiseScorer(settings).score(docs, [[LISTWISE[strategy].generate(doc)] for doc in docs])
    scores = [[(LIKELIHOOD[strategy].loglikelihood(doc, n), False) for n in range(20)] for doc in docs]
    likelihood = reqa.LikelihoodScorer(settings).score(docs, scores)
    assert abs(np.mean([row["mrr"] for row in listwise]) - mean) < 4 * error
    if strategy == "constant":
        assert {row["mrr"] for row in likelihood} <= {0.0, 1 / 10.5}
        assert np.mean([row["mrr"] for row in likelihood]) <= mean
    else:
        assert abs(np.mean([row["mrr"] for row in likelihood]) - mean) < 4 * error


def test_order_of_exposure_carries_nothing(real: Path) -> None:
    """Another shuffle seed shows other orders and leaves every order-free ranker's score as it is."""
    first, second = (
        evaluate(FAMILIES[:1], baseline("first_stage"), limit=50, log_samples=True, metadata={"shuffle_seed": seed})
        for seed in (1, 2)
    )
    assert metric(first, FAMILIES[0], "mrr") == metric(second, FAMILIES[0], "mrr")
    shown = [[row["doc"]["candidates"] for row in samples(results, FAMILIES[0])] for results in (first, second)]
    assert shown[0] != shown[1]
    assert [sorted(texts) for texts in shown[0]] == [sorted(texts) for texts in shown[1]]


# Prompts and requests.


def test_likelihood_prompts_share_their_beginning(sample: None) -> None:
    model = ScriptedModel(-1.0)
    evaluate(["reqa_xquad_en_likelihood"], model)
    by_candidate: dict[str, set[str]] = {}
    for request in model.seen:
        context, continuation = request.args
        assert "<<candidate>>" not in context
        assert continuation == f" {request.doc['question']}"
        by_candidate.setdefault(request.doc["candidates"][request.idx], set()).add(context)
    # One context a sentence, whatever the question.
    assert {len(contexts) for contexts in by_candidate.values()} == {1}
    assert len(by_candidate) == 18


def test_likelihood_in_the_other_direction(sample: None) -> None:
    model = ScriptedModel(-1.0)
    results = evaluate(["reqa_xquad_zh_likelihood"], model, metadata={"direction": "sentence"})
    for request in model.seen:
        context, continuation = request.args
        assert request.doc["question"] in context
        assert continuation == request.doc["candidates"][request.idx]
    assert "of:sentence|per:byte" in results["configs"]["reqa_xquad_zh_likelihood"]["metadata"]["signature"]


def test_a_chat_template_wraps_the_likelihood_prompt(sample: None) -> None:
    model = ScriptedModel(-1.0)
    evaluate(["reqa_xquad_en_likelihood"], model, apply_chat_template=True)
    context = model.seen[0].args[0]
    assert context.startswith("<|user|>Write a question") and context.endswith("<|assistant|>")
    assert model.seen[0].doc["candidates"][0] in context


@pytest.mark.parametrize("language", ["en", "zh", "th"])
def test_prompts_show_candidates_and_question_without_trailing_space(sample: None, language: str) -> None:
    model = ScriptedModel("")
    names = [f"reqa_xquad_{language}{suffix}" for suffix in ("", "_generate", "_reader_bm25", "_reader_na")]
    evaluate(names, model, metadata=OFF)
    for request in model.seen:
        prompt = request.args[0]
        assert prompt == prompt.strip()
        assert request.doc["question"] in prompt
        for text in [*request.doc.get("candidates", ()), *request.doc.get("passages", ())]:
            assert text in prompt
        assert request.args[1]["do_sample"] is False and request.args[1]["temperature"] == 0.0


def test_what_a_model_writes_is_scored_strictly_and_repaired(sample: None) -> None:
    """The first candidate only, one twice, one invented: the rest is missing."""
    results = evaluate(["reqa_xquad_en"], ScriptedModel("[2] > [1] > [2] > [99]"), log_samples=True)
    rows = samples(results, "reqa_xquad_en")
    assert metric(results, "reqa_xquad_en", "valid_rate") == 0.0
    assert metric(results, "reqa_xquad_en", "duplicate_rate") == 0.25
    assert metric(results, "reqa_xquad_en", "invented_rate") == 0.25
    assert metric(results, "reqa_xquad_en", "missing_rate") == pytest.approx(16 / 18)
    for row in rows:
        (gold,) = row["doc"]["relevant"]
        assert row["mrr"] == {2: 1.0, 1: 0.5}.get(gold, 0.0)
        assert row["mrr_repaired"] == pytest.approx({2: 1.0, 1: 0.5}.get(gold, 1 / gold))


def test_unfinished_reasoning_and_nonsense_are_scored_not_raised(sample: None) -> None:
    for text, unfinished in (("<think>[1] > [2]", 1.0), ("", 0.0), ("I can't say.", 0.0)):
        results = evaluate([*FAMILIES[::2], READERS[1]], ScriptedModel(text), metadata=OFF)
        for task in (*FAMILIES[::2], READERS[1]):
            assert metric(results, task, "unfinished_reasoning_rate") == unfinished
        assert metric(results, FAMILIES[0], "mrr") == 0.0
        assert metric(results, READERS[1], "em") == 0.0


def test_a_failed_engine_is_no_score(sample: None) -> None:
    with pytest.raises(DataError, match="each must be a number"):
        evaluate(["reqa_xquad_en_likelihood"], ScriptedModel(float("nan")))


# Settings.


def test_settings_are_checked_before_anything_runs(sample: None) -> None:
    for metadata, message in (
        ({"first_stage": "bm26"}, "first_stage 'bm26': choose from bm25, dense"),
        ({"top_k": 1}, "top_k 1: must be at least 2"),
        ({"shuffle_sed": 3}, "did you mean 'shuffle_seed'"),
    ):
        with pytest.raises(SettingError, match=message):
            evaluate(["reqa_xquad_en"], baseline("oracle"), metadata=metadata)


def test_dense_first_stage_matcher_and_reader(sample: None, minilm: Path) -> None:
    """The real MiniLM: the oracle still gets all, the sentence that shares the question's meaning is found."""
    names = ["reqa_xquad_en", "reqa_xquad_en_generate", "reqa_xquad_en_reader_dense"]
    metadata = {**OFF, "dense_model": str(minilm), "dense_device": "cpu", "first_stage": "dense", "matcher": "dense"}
    results = evaluate(names, baseline("first_stage"), metadata=metadata)
    assert metric(results, names[0], "mrr") > 0.8
    assert metric(results, names[1], "mrr") > 0.8
    assert metric(results, names[2], "answer_shown") > 0.8
    assert "stage1:dense:" in results["configs"][names[0]]["metadata"]["signature"]


def test_absent_dense_model_is_said_before_generation(sample: None, tmp_path: Path) -> None:
    from qilin_tasks.errors import DependencyError

    with pytest.raises(DependencyError, match=r"model .* can't be loaded"):
        evaluate(
            ["reqa_xquad_en_generate"], baseline("oracle"), metadata={"matcher": "dense", "dense_model": str(tmp_path)}
        )


def test_signature_names_pool_and_settings(sample: None) -> None:
    results = evaluate(["reqa_xquad_en", "reqa_mteb_nq"], baseline("oracle"), metadata={"top_k": 5})
    signature = results["configs"]["reqa_xquad_en"]["metadata"]["signature"]
    pool = load_pool("xquad_en").fingerprint
    assert signature.startswith(f"reqa|set:xquad_en|pool:{pool}|seed:1234|stage1:bm25(k1=0.9,b=0.4)|k:5|chars:1000|")
    assert "|limit:200000|" in results["configs"]["reqa_mteb_nq"]["metadata"]["signature"]


def test_groups_have_means(sample: None, minilm: Path) -> None:
    metadata = {**OFF, "dense_model": str(minilm)}
    results = evaluate(["reqa", "reqa_mteb_likelihood", "reqa_squad_reader"], baseline("oracle"), metadata=metadata)
    members = [f"reqa_{name}" for name in ("squad", "nq", "iapp", "xquad_en", "xquad_zh", "xquad_th")]
    mean = np.mean([metric(results, task, "mrr") for task in members])
    assert results["groups"]["reqa"]["mrr,none"] == pytest.approx(mean) == pytest.approx(1.0)
    assert results["groups"]["reqa_mteb_likelihood"]["mrr,none"] == 1.0
    assert results["groups"]["reqa_squad_reader"]["em,none"] == 1.0


def test_reader_values_by_hand(sample: None) -> None:
    """`Ada Finch lit it` against `Ada Finch`: F1 2 * 2/(4+2), METEOR and ROUGE-L the same for every sample question."""
    results = evaluate(["reqa_xquad_en_reader_na"], ScriptedModel("Ada Finch lit it"), metadata=OFF, log_samples=True)
    row = next(r for r in samples(results, "reqa_xquad_en_reader_na") if r["doc"]["answers"] == ["Ada Finch"])
    assert (row["em"], row["f1"], row["rouge_l"]) == (0.0, pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_reader_with_bertscore_and_meteor(sample: None, minilm: Path) -> None:
    metadata = {"bertscore": "on", "bertscore_model": str(minilm), "bertscore_layer": 4}
    results = evaluate(["reqa_xquad_zh_reader_oracle"], baseline("oracle"), metadata=metadata)
    assert metric(results, "reqa_xquad_zh_reader_oracle", "bertscore_f1") == pytest.approx(1.0)
    assert metric(results, "reqa_xquad_zh_reader_oracle", "meteor") > 0.9
    signature = results["configs"]["reqa_xquad_zh_reader_oracle"]["metadata"]["signature"]
    assert "meteor:nltk" in signature and "+none" in signature and json.dumps(signature)
