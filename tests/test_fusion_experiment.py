"""MrRank's experiment by one command: its ranks, its splits, what it stores, and what it refuses before any work."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nq_rows import example

from qilin_tasks.commands import mrrank
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.reqa.fusion_experiment import metrics_of, rank_of
from qilin_tasks.reqa.pools import load_pool
from qilin_tasks.reqa.ranks import best_rank
from qilin_tasks.reqa.stored_rankings import rank_pool
from qilin_tasks.retrieval.ranker_file import load_ranker


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    mrrank.add_parser(parser.add_subparsers())
    args = parser.parse_args(["mrrank", *arguments])
    return int(args.run(args))


@given(
    scores=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    relevant=st.sets(st.integers(0, 14), min_size=1),
)
def test_a_rank_in_a_list_is_reqas_rank_in_an_array(scores: list[int], relevant: set[int]) -> None:
    found = rank_of([(position, float(score)) for position, score in enumerate(scores)], relevant)
    inside = [position for position in relevant if position < len(scores)]
    assert found == (best_rank(np.array(scores, dtype=float), inside) if inside else np.inf)


def test_metrics_by_hand() -> None:
    assert metrics_of(np.array([1, 2, 6, np.inf])) == pytest.approx(
        {"mrr": (1 + 1 / 2 + 1 / 6) / 4, "r@1": 1 / 4, "r@5": 2 / 4, "r@10": 3 / 4}
    )


@pytest.fixture
def splits(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XQuAD's first 60 paragraphs as SQuAD's public files: two of three teach, the third is dev."""
    articles = json.loads((shared / "data" / "xquad" / "xquad.en.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]][:60]
    for name, chosen in (("train-v1.1.json", (0, 1)), ("dev-v1.1.json", (2,))):
        data = [{"title": "", "paragraphs": [each]} for n, each in enumerate(paragraphs) if n % 3 in chosen]
        (tmp_path / name).write_text(json.dumps({"data": data}), encoding="utf-8")
    monkeypatch.setenv("REQA_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_one_command_trains_on_train_and_evaluates_dev(
    splits: Path, minilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = splits / "out"
    names = ["bm25", str(minilm)]
    arguments = ["--train", "squad_train", "--test", "squad", "--out", str(out), "--depth", "20"]
    assert command(*arguments, "--retrievers", *names, "--repetitions", "3") == 0
    printed = capsys.readouterr().out
    train, dev = load_pool("squad_train"), load_pool("squad")
    assert f"train: squad_train, {train.pairs} pairs, {train.summary}" in printed
    assert f"test: squad, {dev.pairs} pairs, {dev.summary}" in printed
    result = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert result["trained_on"] == len(train.questions) and result["test"]["questions"] == len(dev.questions)
    assert result["questions_in_both"] == 0
    systems = {row["system"]: row for row in result["systems"]}
    assert list(systems) == [*names, "rrf", "weighted (equal)", "routing", "mrrank"]
    assert [row["repetitions"] for row in systems.values()] == [1] * 5 + [3]
    learned = systems["mrrank"]
    assert learned["metrics"]["mrr"] == pytest.approx(np.mean(learned["mrr_of_each"]))
    assert len(set(learned["mrr_of_each"])) > 1
    # A list that is cut at 20 has the whole pool's ranks up to 20.
    stored = rank_pool(dev, encoder=None, depth=len(dev.candidates), file=out / "whole.npz")
    ranks = np.array([rank_of(r, set(q.gold)) for r, q in zip(stored, dev.questions, strict=True)])
    expected = metrics_of(np.where(ranks <= 20, ranks, np.inf))
    assert systems["bm25"]["metrics"] == pytest.approx(expected, abs=1e-3)
    assert learned["metrics"]["mrr"] > min(systems[name]["metrics"]["mrr"] for name in names)
    assert all(row["metrics"]["r@10"] <= result["test"]["offered"] for row in systems.values())
    # The same command again reads the rankings; a main retriever bounds the pool by its own.
    before = (out / "rankings" / "test.0.npz").stat().st_mtime_ns
    assert command(*arguments, "--retrievers", *names, "--repetitions", "1", "--main", "bm25") == 0
    assert (out / "rankings" / "test.0.npz").stat().st_mtime_ns == before
    bounded = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert bounded["test"]["offered"] < result["test"]["offered"]
    assert bounded["systems"][-1]["system"] == "mrrank (main: bm25)"
    assert load_ranker(out / "ranker.0.npz", kind="mrrank").recipe["main"] == "bm25"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --runs A B with --qrels FILE, or --train SET with --test SET"),
        (["--train", "squad_train", "--runs", "a", "b"], "give either"),
        (["--train", "squad_train"], "--train and --test belong together"),
        (["--runs", "a", "b"], "--runs and --qrels belong together"),
        (["--train", "squat", "--test", "squad"], "set 'squat': choose from .*squad_train.*, or a SQuAD-format file"),
        (["--train", "squad", "--test", "squad"], "squad and squad are the same questions"),
        (["--train", "nq", "--test", "squad", "--main", "dpr"], "main 'dpr': choose from"),
        (["--train", "nq", "--test", "squad", "--retrievers", "bm25"], "retrievers bm25: give two or more"),
        (["--train", "nq", "--test", "squad", "--depth", "1"], "depth 1: choose a number from 2"),
        (["--train", "nq", "--test", "squad", "--prompts", "bm25", "q", "d"], "prompts of 'bm25': choose from"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_model_is_loaded(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")
    with pytest.raises((SettingError, DataError), match=message):
        command(*arguments, "--out", str(tmp_path / "out"))


def test_a_main_run_must_be_among_the_runs(tmp_path: Path) -> None:
    paths = [tmp_path / "a.trec", tmp_path / "b.trec"]
    options: dict[str, Any] = {"depth": 10, "seed": 0, "out": tmp_path / "r.npz", "main": "c.trec"}
    with pytest.raises(SettingError, match=r"main 'c\.trec': choose from .*a\.trec"):
        mrrank.train(paths, tmp_path / "q", kind="mrrank", **options)
    with pytest.raises(SettingError, match="is for --kind mrrank"):
        mrrank.train(paths, tmp_path / "q", kind="routing", **options)


def test_a_damaged_file_of_rankings_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")
    pool, file = load_pool("squad"), tmp_path / "r.npz"
    first = list(rank_pool(pool, encoder=None, depth=5, file=file))
    file.write_bytes(file.read_bytes()[:100])
    assert list(rank_pool(pool, encoder=None, depth=5, file=file)) == first
    assert "made again" in caplog.text
    assert len(next(iter(rank_pool(pool, encoder=None, depth=3, file=file)))) <= 3


def test_the_train_split_of_nq_is_streamed_converted_and_its_size_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(example(str(n))) for n in range(12)), encoding="utf-8")
    load, asked = datasets.load_dataset, []

    def hub(name: str, **options: Any) -> Any:
        asked.append((name, options["split"], options["streaming"]))
        return load("json", data_files=str(tmp_path / "rows.jsonl"), split="train", streaming=True)

    monkeypatch.setattr(datasets, "load_dataset", hub)
    monkeypatch.setenv("REQA_DATA", "hub")
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path / "cache"))
    with caplog.at_level(logging.INFO, logger="qilin_tasks"):
        built = load_pool("nq_train", seed=7)
    assert asked == [("google-research-datasets/natural_questions", "train", True)]
    assert built.pairs == 12 and f"nq_train: 12 pairs, {built.summary}" in caplog.text
    assert (tmp_path / "cache" / "reqa" / "nq.train.json").is_file()


def named(number: int) -> dict[str, Any]:
    """A page of NQ's columns whose answer sentence says its own name."""
    row = example(str(number))
    tokens = row["document"]["tokens"]["token"]
    tokens[tokens.index("Bob")] = f"Bob{number}"
    return row | {"question": {"text": f"what does Bob{number} do"}}


def test_the_command_over_the_splits_of_nq(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = datasets.load_dataset
    for split, numbers in (("train", range(30)), ("validation", range(30, 42))):
        rows = "\n".join(json.dumps(named(number)) for number in numbers)
        (tmp_path / f"{split}.jsonl").write_text(rows, encoding="utf-8")

    def hub(name: str, **options: Any) -> Any:
        file = str(tmp_path / f"{options['split']}.jsonl")
        return load("json", data_files=file, split="train", streaming=True)

    monkeypatch.setattr(datasets, "load_dataset", hub)
    monkeypatch.setenv("REQA_DATA", "hub")
    monkeypatch.setenv("QILIN_TASKS_CACHE", str(tmp_path / "cache"))
    names = ["bm25", str(minilm)]
    arguments = ["--train", "nq_train", "--test", "nq", "--depth", "10", "--repetitions", "2", "--retrievers", *names]
    assert command(*arguments, "--out", str(tmp_path / "out")) == 0
    printed = capsys.readouterr().out
    assert "train: nq_train, 30 pairs, " in printed and "test: nq, 12 pairs, " in printed
    result = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert (result["trained_on"], result["test"]["questions"], result["questions_in_both"]) == (30, 12, 0)
    systems = {row["system"]: row for row in result["systems"]}
    # A name stands in one sentence alone.
    assert systems["bm25"]["metrics"]["mrr"] == 1.0
    assert systems["mrrank"]["repetitions"] == 2 and systems["mrrank"]["metrics"]["r@10"] > 0.5
