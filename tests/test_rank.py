"""`qilin-tasks rank`: systems over exposed candidates, their runs, and their rows beside the models'."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.evaluation import defaults
from support.ranking_folder import recommendation_row, search_row, write_ranking
from support.runs import write_run as write_result
from test_dense import tiny_bert  # noqa: F401

from qilin_tasks.commands import rank as command
from qilin_tasks.errors import DataError, DependencyError, QilinTasksError, SettingError
from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.requests import Request
from qilin_tasks.ranking.settings import ListwiseSettings
from qilin_tasks.report.analysis import analyse
from qilin_tasks.report.collect import boards_of
from qilin_tasks.results.reader import find_results, iter_samples
from qilin_tasks.retrieval.encoders import load_encoder
from qilin_tasks.sources.qilin import Note, open_qilin
from qilin_tasks.sources.runs import read_run
from qilin_tasks.systems import rank as ranking
from qilin_tasks.systems.bert_cross import CrossEncoder
from qilin_tasks.systems.rank import rank
from qilin_tasks.systems.run_file import RunFile
from qilin_tasks.systems.system import Exposed, SystemSettings

TITLES = ("cat food", "dog", "cats and dogs", "rain", "")


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["rank", *arguments])
    return int(args.run(args))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five notes; three requests, of which the last has no click."""
    notes = [
        {"note_idx": i, "note_title": title, "note_content": title[:3], "note_type": 1, "image_path": []}
        for i, title in enumerate(TITLES)
    ]
    search = [
        search_row(0, [3, 0, 1, 3], [0], query="cat"),
        search_row(1, [4, 2, 1], [1], query=None),
        search_row(2, [0, 1], [], query="dog"),
    ]
    recommendation = [recommendation_row(0, [2, 3, 1], [3], query="rain")]
    folder = write_ranking(tmp_path / "data", notes=notes, search=search, recommendation=recommendation)
    monkeypatch.setenv("QILIN_DATA", str(folder))
    return tmp_path


class Given:
    """A system that gives the note's id, and counts what it scores; it fails at the request `fails_at`."""

    reads_notes: ClassVar[bool] = True
    needs: ClassVar[str | None] = None

    def __init__(self, settings: SystemSettings | None = None, *, fails_at: int = -1, factor: float = 1.0) -> None:
        self.scored: list[int] = []
        self.fails_at, self.factor = fails_at, factor

    def recipe(self) -> Mapping[str, str | int]:
        return {"given": str(self.factor)}

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        for one in requests:
            if one.row == self.fails_at:
                raise KeyboardInterrupt
            self.scored.append(one.row)
            assert [note.note_idx for note in one.notes] == list(one.candidates)
        return [[self.factor * note for note in one.candidates] for one in requests]


def ranked(data: Path, system: Any, **options: Any) -> dict[str, Any]:
    given = {"config": "search_test", "rows": None, "name": "given", "out": data / "given.run", **options}
    return rank(open_qilin(), system, **given)


def test_bm25_by_hand(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = data / "runs"
    assert run("--system", "bm25", "--config", "search_test", "--out", str(out), "--quiet") == 0
    printed = capsys.readouterr().out
    lines = (out / "bm25" / "search_test.run").read_text("utf-8").splitlines()
    # "cat" is in the first note, "a" in "rain", none of it in "dog"; without a query all are alike.
    assert [line.split()[:4] for line in lines[:3]] == [[*"0", "Q0", note, rank] for note, rank in ("01", "32", "13")]
    assert {line.split()[4] for line in lines[3:]} == {"0.0"}
    (result,) = find_results([out])
    assert (result.model, result.task, result.n) == ("bm25", "qilin_search_run", 2)
    assert [sample.key for sample in iter_samples(result)] == [0, 1]
    assert next(iter_samples(result)).scores["mrr@10"] == 1.0
    assert (
        result.parts["system"] == "bm25" and result.parts["rows"] == "1000" and result.parts["bm25"].startswith("okapi")
    )
    assert f"mrr@10         {result.values['mrr@10']:.4f}" in printed
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


def test_bm25_is_the_first_stage_of_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    assert run("--system", "bm25", "--config", "search_test", "--out", str(tmp_path), "--quiet") == 0
    made = read_run(tmp_path / "bm25" / "search_test.run")
    distinct = 0
    chosen = ListwiseSettings.from_metadata({**defaults("qilin/_ranking_yaml"), "config": "search_test", "rows": None})
    for document in build_ranking(chosen):
        mine = made.query_ids == document["doc_key"]
        ids = [document["candidates"][place - 1]["note_idx"] for place in document["first_stage"]]
        assert sorted(ids) == sorted(made.candidate_ids[mine].tolist())
        # Ties go by the shuffled order there, by a hash of the ids here.
        if len(set(made.scores[mine].tolist())) == len(ids):
            distinct += 1
            assert ids == made.candidate_ids[mine].tolist()
    assert distinct > 5


def test_the_other_config_and_all_rows(data: Path) -> None:
    arguments = ["--config", "recommendation_test", "--out", str(data / "runs"), "--quiet", "--all-rows"]
    assert run("--system", "bm25", *arguments, "--name", "BM25 / mine") == 0
    (result,) = find_results([data / "runs"])
    assert (result.model, result.task, result.parts["rows"]) == ("BM25 / mine", "qilin_recommendation_run", "all")
    assert result.values["mrr@10"] == 1.0 and result.path.parent.name == "BM25_mine"


def test_bert_bi_is_the_dot_product(data: Path, tiny_bert: Path) -> None:  # noqa: F811
    arguments = ["--system", "bert-bi", "--model", str(tiny_bert), "--max-length", "16", "--device", "cpu", "--quiet"]
    assert run(*arguments, "--config", "search_test", "--out", str(data / "runs"), "--rows", "1") == 0
    encoder = load_encoder(str(tiny_bert), backend="mean-pooling", batch_size=8, max_length=16, device="cpu")
    notes = encoder.encode([f"{TITLES[i]} {TITLES[i][:3]}" for i in (0, 1, 3)])
    expected = notes @ encoder.encode(["cat"])[0]
    made = read_run(data / "runs" / f"bert-bi_{tiny_bert.name}" / "search_test.run")
    scores = dict(zip(made.candidate_ids.tolist(), made.scores.tolist(), strict=True))
    assert [scores[i] for i in (0, 1, 3)] == pytest.approx(expected.tolist(), rel=1e-4)


@pytest.mark.parametrize("joined", ["pair", "string"])
def test_bert_cross_is_the_logit_of_what_is_joined(tiny_bert: Path, joined: str) -> None:  # noqa: F811
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    notes = (Note(0, "cat", "eats"), Note(1, "a much longer title", "and text " * 9), Note(2, "", ""))
    settings = SystemSettings(model=str(tiny_bert), max_length=16, batch_size=2, device="cpu", input=joined)
    (scores,) = CrossEncoder(settings).score([Exposed(0, "cats", (0, 1, 2), notes)])
    model = AutoModelForSequenceClassification.from_pretrained(tiny_bert).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    for note, score in zip(notes, scores, strict=True):
        texts = (
            ["cats", f"{note.title} {note.content}"] if joined == "pair" else [f"cats [SEP] {note.title}{note.content}"]
        )
        with torch.inference_mode():
            logit = model(**tokenizer(*texts, truncation=True, max_length=16, return_tensors="pt")).logits.item()
        assert score == pytest.approx(logit, abs=1e-5)
    segments = [tokenizer("cats", "a").get("token_type_ids"), tokenizer("cats [SEP] a").get("token_type_ids")]
    assert [max(ids) for ids in segments if ids] == [1, 0]


def test_bad_input_stops_before_any_work(data: Path, tiny_bert: Path, minilm: Path) -> None:  # noqa: F811
    headless = str(minilm)
    (data / "words.csv").write_text("qid,pid,score\nq1,d1,1\n")
    (data / "twice.csv").write_text("qid,pid,score\n0,1,1\n0,1,2\n")
    (data / "other.csv").write_text("qid,pid,score\n70,1,1\n")
    cross = ["--system", "bert-cross", "--model", str(tiny_bert)]
    for arguments, kind, message in (
        (["--system", "bert"], SettingError, "--system 'bert': choose from bert-bi, bert-cross, bm25, dcn-v2, file"),
        (["--system", "bert-bi"], SettingError, r"--system bert-bi needs --model FOLDER"),
        (["--system", "bert-cross"], SettingError, r"--system bert-cross needs --model FOLDER"),
        (["--system", "file"], SettingError, "--system file needs --run FILE"),
        (["--system", "bm25", "--model", "x"], SettingError, "--system bm25 takes no --model"),
        (["--system", "bert-cross", "--model", headless], DataError, "no trained cross-encoder: weights are missing"),
        (["--system", "bert-cross", "--model", str(data / "nowhere")], DependencyError, "can't be loaded"),
        (["--system", "bert-bi", "--model", str(data / "nowhere")], DependencyError, "can't be loaded"),
        ([*cross, "--max-length", "5000"], SettingError, "--max-length 5000: the model .* takes .* tokens at most"),
        ([*cross, "--max-length", "0"], SettingError, "--max-length 0: choose a number from 1"),
        ([*cross, "--input", "both"], SettingError, "--input 'both': choose from pair, string"),
        (["--system", "bm25", "--backend", "x"], SettingError, "--backend 'x': choose from mean-pooling"),
        (["--system", "bm25", "--rows", "0"], SettingError, "--rows 0: must be at least 1"),
        (["--system", "bm25", "--config", "dqa"], SettingError, "--config 'dqa': choose from recommendation_test"),
        (["--system", "bm25", "--data", "/nowhere"], SettingError, "QILIN_DATA '/nowhere'"),
        (["--system", "file", "--run", str(data / "no.csv")], DataError, "no such file"),
        (["--system", "file", "--run", str(data / "words.csv")], DataError, "query ids must be row numbers"),
        (["--system", "file", "--run", str(data / "twice.csv")], DataError, "query 0 ranks candidate 1 twice"),
        (["--system", "file", "--run", str(data / "other.csv")], DataError, "none of 6 exposed candidates is ranked"),
    ):
        with pytest.raises(kind, match=message):
            run("--config", "search_test", "--out", str(data / "runs"), "--quiet", *arguments)
    assert not list((data / "runs").rglob("*.run")) and not list((data / "runs").rglob("results_*"))


def test_a_file_ranks_what_it_holds_of_the_exposed(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    # 99 was not shown, 3 is not ranked; row 1 is absent.
    (data / "mine.csv").write_text("qid,pid,score\n0,99,9\n0,0,5\n0,1,7\n")
    arguments = ["--system", "file", "--run", str(data / "mine.csv"), "--config", "search_test", "--quiet"]
    assert run(*arguments, "--out", str(data / "runs")) == 0
    made = read_run(data / "runs" / "mine" / "search_test.run")
    assert list(zip(made.candidate_ids.tolist(), made.scores.tolist(), strict=True)) == [(1, 7.0), (0, 5.0)]
    assert "4 of 6 exposed candidates are not ranked (1 of 2 requests have none)" in caplog.text
    (result,) = find_results([data / "runs"])
    assert (result.n, result.values["mrr@10"]) == (1, 0.5)


def test_a_stopped_run_goes_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "PIECE", 1)
    with pytest.raises(KeyboardInterrupt):
        ranked(data, Given(fails_at=1))
    assert not (data / "given.run").exists()
    system = Given()
    ranked(data, system)
    assert system.scored == [1]
    whole = (data / "given.run").read_bytes()
    assert not list(data.glob(".given*"))
    # What is finished is not done again; another recipe is refused, or replaces it whole.
    ranked(data, again := Given())
    assert again.scored == [] and (data / "given.run").read_bytes() == whole
    with pytest.raises(DataError, match=r"made by another recipe \(different: system\)"):
        ranked(data, Given(factor=-1.0))
    ranked(data, Given(factor=-1.0), overwrite=True)
    assert [line.split()[2] for line in (data / "given.run").read_text("utf-8").splitlines()[:3]] == ["0", "1", "3"]
    assert json.loads((data / "given.run.json").read_text("utf-8"))["system"] == {"given": "-1.0"}


def test_pieces_of_another_recipe_are_not_taken(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "PIECE", 1)
    with pytest.raises(KeyboardInterrupt):
        ranked(data, Given(fails_at=1))
    ranked(data, system := Given(factor=2.0))
    assert system.scored == [0, 1]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers(data: Path, bad: float) -> None:
    with pytest.raises(DataError, match=r"row 0: the system's score (nan|inf) is no finite number"):
        ranked(data, Given(factor=bad))
    assert not (data / "given.run").exists()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_a_ranking_is_a_permutation_with_falling_scores(scores: list[float]) -> None:
    candidates = tuple(range(len(scores)))
    request = Request(0, 0, "q", (), candidates, frozenset(), 0)
    made = ranking._ranking(request, scores)
    assert sorted(note for note, _ in made) == list(candidates)
    assert [score for _, score in made] == sorted(scores, reverse=True)


def test_the_rows_stand_beside_the_models(data: Path) -> None:
    out = data / "runs"
    assert run("--system", "bm25", "--config", "search_test", "--out", str(out), "--quiet") == 0
    (data / "mine.csv").write_text("qid,pid,score\n0,3,5\n0,1,7\n0,0,1\n1,1,3\n1,2,2\n1,4,1\n")
    arguments = ["--system", "file", "--run", str(data / "mine.csv"), "--name", "DCN-V2"]
    assert run(*arguments, "--config", "search_test", "--out", str(out), "--quiet") == 0
    signature = "qilin-listwise|config:search_test|rows:1000|data:d|n:2|v:1.0"
    docs = [{"doc_key": row, "query": "q", "candidates": []} for row in (0, 1)]
    result = {"model": "llm", "task": "qilin_search_listwise", "docs": docs, "responses": ["[1]", "[2]"]}
    scores = [{"mrr@10": 1.0}, {"mrr@10": 0.5}]
    metadata = {"config": "search_test"}
    write_result(out / "llm", **result, scores=scores, signature=signature, metadata=metadata)
    boards = {board.name: board for board in boards_of(find_results([out]))}
    assert boards["qilin_search_listwise"].models == ["bm25", "DCN-V2", "llm"]
    assert boards["qilin_search_run"].models == ["bm25", "DCN-V2"]
    # Two systems are two rows of one table: what made each is no difference in what was asked.
    assert not boards["qilin_search_run"].warnings and not boards["qilin_search_listwise"].warnings
    analysis = analyse(boards["qilin_search_listwise"], resamples=100, seed=0)
    interval = analysis.intervals["qilin_search_listwise", "DCN-V2", "mrr@10"]
    assert interval.value == pytest.approx((1 / 3 + 1) / 2) and 0 <= interval.low <= interval.high <= 1


def test_runs_over_other_requests_stay_on_their_own_board(data: Path) -> None:
    out = data / "runs"
    assert run("--system", "bm25", "--config", "search_test", "--out", str(out), "--quiet", "--rows", "1") == 0
    docs = [{"doc_key": row, "query": "q", "candidates": []} for row in (0, 1)]
    result = {"model": "llm", "task": "qilin_search_listwise", "docs": docs, "responses": ["[1]", "[2]"]}
    signature = "qilin-listwise|config:search_test|rows:1000|data:d|n:2|v:1.0"
    scores = [{"mrr@10": 1.0}, {"mrr@10": 0.5}]
    write_result(out / "llm", **result, scores=scores, signature=signature, metadata={"config": "search_test"})
    boards = {board.name: board.models for board in boards_of(find_results([out]))}
    assert boards == {"qilin_search_listwise": ["llm"], "qilin_search_run": ["bm25"]}


def test_errors_are_of_ours() -> None:
    with pytest.raises(QilinTasksError):
        RunFile(SystemSettings(run_file=Path("/nowhere.run")))
