"""Every metric of DQA over all answers and over those whose user acted, from one run."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dqa_folder import dqa_row, write_dqa
from support.evaluation import ScriptedModel, evaluate, metric
from test_rescore import again, save
from test_settings import settings

from qilin_tasks.dqa.documents import ACTION_COLUMNS
from qilin_tasks.dqa.scorer import METRICS, DQAScorer
from qilin_tasks.families import FAMILIES
from qilin_tasks.metrics.metric import Metric, rows, score_table, with_share
from qilin_tasks.report.analysis import analyse
from qilin_tasks.report.collect import boards_of
from qilin_tasks.report.tables import results_csv
from qilin_tasks.report.variants import difference
from qilin_tasks.results.reader import find_results, iter_samples

# (answer, whether the user acted): the model says 一二, so that ROUGE-L is 1, 0.5, 0, 2/3.
ANSWERS = (("一二", True), ("一三", False), ("四五", True), ("一", False))
OFF = {"bertscore": "off"}


def folder(path: Path, *, drop: tuple[str, ...] = (), acted: bool = True) -> Path:
    made = [
        dqa_row(number, query="问", dqa_output=text, is_like_clk=float(engaged and acted))
        for number, (text, engaged) in enumerate(ANSWERS)
    ]
    return write_dqa(path, made, [("题", "文")], drop=drop)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QILIN_DATA", str(folder(tmp_path / "data")))
    return tmp_path


def test_values_by_hand(data: Path) -> None:
    results = evaluate(["qilin_dqa_na"], ScriptedModel("一二"), log_samples=True)
    assert metric(results, "qilin_dqa_na", "rouge_l") == pytest.approx((1 + 0.5 + 0 + 2 / 3) / 4)
    assert metric(results, "qilin_dqa_na", "rouge_l_engaged") == pytest.approx((1 + 0) / 2)
    # Two values, 1 and 0: their standard deviation is 1 / sqrt 2, the error of the mean 1 / 2.
    assert results["results"]["qilin_dqa_na"]["rouge_l_engaged_stderr,none"] == pytest.approx(0.5)
    for sample, (_, engaged) in zip(results["samples"]["qilin_dqa_na"], ANSWERS, strict=True):
        assert ("rouge_l_engaged" in sample["metrics"]) == ("rouge_l_engaged" in sample) == engaged
        assert not engaged or sample["rouge_l_engaged"] == sample["rouge_l"]
    assert results["n-samples"]["qilin_dqa_na"]["effective"] == 4


def test_the_table_derives_them_and_computes_nothing_twice() -> None:
    assert list(DQAScorer.METRICS) == [*METRICS, *(f"{name}_engaged" for name in METRICS)]
    calls: list[str] = []

    def score(batch: list[bool]) -> list[float]:
        calls.append("scored")
        return [float(place) for place in range(len(batch))]

    row: Metric[list[bool]] = Metric(about="its place", score=score, higher_is_better=True)
    table = with_share({"place": row}, "odd", lambda batch: batch, about="where odd")
    assert rows(score_table(table, [False, True], off=())) == [{"place": 0.0}, {"place": 1.0, "place_odd": 1.0}]
    assert calls == ["scored"]
    assert score_table(table, [True], off={"place", "place_odd"}) == {}


@given(st.lists(st.tuples(st.text(max_size=8), st.booleans()), min_size=1, max_size=6))
def test_a_share_is_the_whole_without_the_rest(answers: list[tuple[str, bool]]) -> None:
    docs = [
        {"doc_key": place, "query": "问", "notes": [], "reference": "一二 abc 3", "engaged": engaged}
        for place, (_, engaged) in enumerate(answers)
    ]
    for row, (_, engaged) in zip(
        DQAScorer(settings(context="na", **OFF)).score(docs, [[text] for text, _ in answers]), answers, strict=True
    ):
        whole = {name: value for name, value in row.items() if not name.endswith("_engaged")}
        share = {name.removesuffix("_engaged"): value for name, value in row.items() if name.endswith("_engaged")}
        assert share == (whole if engaged else {})


@pytest.mark.parametrize(
    ("drop", "acted", "word"),
    [(ACTION_COLUMNS, True, "have not all of is_like_clk"), ((), False, "no user acted")],
    ids=["no columns", "nobody"],
)
def test_without_them_the_columns_are_absent_with_a_word(
    drop: tuple[str, ...],
    acted: bool,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setenv("QILIN_DATA", str(folder(tmp_path / "data", drop=drop, acted=acted)))
    result = save(tmp_path / "runs", "qilin_dqa_na", ScriptedModel("一二"), **OFF)
    assert f"no column `*_engaged`: {word}" in caplog.text or f"no column `*_engaged`: the data {word}" in caplog.text
    assert result.values["rouge_l"] > 0 and not [name for name in result.values if name.endswith("_engaged")]
    assert ("engaged" in result.parts) == (not drop)
    assert dict(again(result, {}).values) == pytest.approx(dict(result.values))


def test_rescore_and_the_report_have_them(data: Path) -> None:
    before = save(data / "runs", "qilin_dqa_na", ScriptedModel("一二"), **OFF)
    done = again(before, {})
    assert done.values["rouge_l_engaged"] == pytest.approx(0.5) and dict(done.values) == dict(before.values)
    assert dict(done.errors) == pytest.approx(dict(before.errors)) and done.signature == before.signature
    assert [s.scores for s in iter_samples(done)] == [s.scores for s in iter_samples(before)]
    (board,) = boards_of(find_results([data / "runs"]))
    assert board.headline() == ["rouge_l"]
    lines = results_csv([(board, analyse(board, resamples=100, seed=0))]).splitlines()
    (line,) = (line.split(",") for line in lines if ",rouge_l_engaged," in line)
    assert line[6:10] == ["True", "2", "2", "0.5"]


def test_an_interval_is_over_the_documents_that_have_a_value(data: Path) -> None:
    from qilin_tasks.export.exported import exported

    one = exported(save(data / "runs", "qilin_dqa_na", ScriptedModel("一二"), **OFF))
    interval = one.interval("rouge_l_engaged")
    assert (interval.value, interval.se, interval.n) == (pytest.approx(0.5), pytest.approx(0.5), 2)
    assert one.interval("rouge_l").n == 4 and one.metrics[0] == "rouge_l"
    assert all(one.interval(metric).n == (2 if metric.endswith("_engaged") else 4) for metric in one.metrics)


def test_repeats_keep_the_share(data: Path, tmp_path: Path) -> None:
    from qilin_tasks.repeats import score_repeats

    scorer = DQAScorer(settings(context="na", **OFF))
    docs = [
        {"doc_key": 0, "query": "问", "notes": [], "reference": "一二", "engaged": False},
        {"doc_key": 1, "query": "问", "notes": [], "reference": "一二", "engaged": True},
    ]
    done = score_repeats(scorer, docs, [[["一二", "三"]], [["一二", "一"]]])
    assert [row.get("rouge_l_engaged") for row in done.values] == [None, pytest.approx((1 + 2 / 3) / 2)]
    assert done.values[0]["rouge_l"] == 0.5
    assert done.variance is not None and done.variance["between"]["rouge_l_engaged"] == 0.0
    # Variance of (1, 2/3) by n - 1: (1/6)**2 * 2.
    assert done.variance["within"]["rouge_l_engaged"] == pytest.approx(2 / 36)


def test_the_signature_names_who_acted_and_data_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signatures = {}
    for name, options in {"with": {}, "nobody": {"acted": False}, "without": {"drop": ACTION_COLUMNS}}.items():
        monkeypatch.setenv("QILIN_DATA", str(folder(tmp_path / name, **options)))
        signatures[name] = save(tmp_path / "runs" / name, "qilin_dqa_na", ScriptedModel("一二"), **OFF)
    assert len({result.parts["data"] for result in signatures.values()}) == 1
    assert signatures["with"].parts["engaged"].startswith("2@")
    assert signatures["nobody"].parts["engaged"].startswith("0@")
    assert "engaged" not in signatures["without"].parts
    # A result without the columns stands beside one with them; two that disagree on who acted don't.
    assert difference(signatures["without"], signatures["with"].signature) == ""
    assert difference(signatures["with"], signatures["without"].signature) == ""
    assert "engaged 0@" in difference(signatures["nobody"], signatures["with"].signature)


def test_answers_of_before_are_rescored_without_them(data: Path) -> None:
    result = save(data / "runs", "qilin_dqa_na", ScriptedModel("一二"), **OFF)
    assert result.samples_path is not None
    lines = [json.loads(line) for line in result.samples_path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["doc"]["engaged"]
    result.samples_path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    done = again(result, {})
    assert done.values["rouge_l"] == pytest.approx(result.values["rouge_l"])
    assert "rouge_l_engaged" not in done.values and not any(map(math.isnan, done.values.values()))


def test_the_oldest_harness_counts_its_last_metric(data: Path) -> None:
    result = save(data / "runs", "qilin_dqa_na", ScriptedModel("一二"), **OFF)
    written = json.loads(result.path.read_text(encoding="utf-8"))
    written["n-samples"]["qilin_dqa_na"]["effective"] = 2
    result.path.write_text(json.dumps(written), encoding="utf-8")
    assert find_results([data / "runs"])[0].n == 4
    metadata = written["configs"]["qilin_dqa_na"]["metadata"]
    metadata["signature"] = metadata["signature"].replace("|engaged:", "|other:")
    result.path.write_text(json.dumps(written), encoding="utf-8")
    assert find_results([data / "runs"])[0].n == 2


def test_other_families_have_none() -> None:
    with_engaged = {name for name, f in FAMILIES.items() if any(row.of for row in f.scorer.METRICS.values())}
    assert with_engaged == {"dqa", "custom_dqa"}


def test_the_harness_warns_of_other_tasks_only(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    evaluate(["qilin_dqa_na"], ScriptedModel("一二"))
    assert "not scored on the same number" not in caplog.text
    said: Any = logging.getLogger("lm_eval.evaluator_utils")
    # Another test of this process may have had the harness set up its loggers, with a level and handlers of their own.
    caplog.set_level(logging.WARNING, logger=said.name)
    said.addHandler(caplog.handler)
    try:
        said.warning("[%s] Metrics were not scored on the same number of documents", "gsm8k")
    finally:
        said.removeHandler(caplog.handler)
    assert "gsm8k" in caplog.text
