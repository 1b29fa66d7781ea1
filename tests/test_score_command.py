from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qilin_tasks.commands import score
from qilin_tasks.errors import DataError, QilinTasksError, SettingError
from qilin_tasks.results.published import CONDITIONS, CONFIGS, published, published_for
from qilin_tasks.results.reader import find_results, iter_samples

RUN = "qid,pid,score\n0,1,3\n0,2,2\n0,3,1\n1,4,2\n1,5,1\n"
QRELS = "qid,pid\n0,2\n1,4\n1,9\n"


def run_score(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    score.add_parser(parser.add_subparsers())
    args = parser.parse_args(["score", *arguments])
    return int(args.run(args))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text(RUN)
    (tmp_path / "qrels.csv").write_text(QRELS)
    return tmp_path


def arguments(files: Path, **changed: str) -> list[str]:
    values = {"config": "search_test", "run": f"{files}/mine.csv", "qrels": f"{files}/qrels.csv", "out": f"{files}/out"}
    return [part for name, value in {**values, **changed}.items() for part in (f"--{name}", value) if value]


def test_scores_and_writes_what_the_report_reads(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_score(*arguments(files, name="DCN-V2"), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["metrics"]["mrr@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert printed["metrics"]["map@10"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert (printed["queries"], printed["queries_without_labels"], printed["queries_without_ranking"]) == (2, 0, 0)
    (result,) = find_results([files / "out"])
    assert (result.model, result.task, result.n) == ("DCN-V2", "qilin_search_run", 2)
    assert result.values == printed["metrics"]
    assert result.metadata["config"] == "search_test"
    samples = list(iter_samples(result))
    assert [sample.key for sample in samples] == [0, 1]
    assert samples[0].scores["mrr@10"] == 0.5
    assert samples[0].filtered == [[1, 2, 3]]
    assert not list((files / "out").rglob(".unfinished-*"))


def test_a_table_without_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "qrels.csv").write_text(QRELS + "7,1\n")
    (files / "mine.csv").write_text(RUN + "5,1,1\n")
    assert run_score(*arguments(files)) == 0
    printed = capsys.readouterr().out
    assert "mine on search_test: 2 queries" in printed
    assert "1 queries of the run without a label" in printed
    assert "1 labelled queries without a ranking" in printed
    assert "mrr@10         0.7500" in printed


@pytest.mark.parametrize(
    ("config", "qrels", "fixture"),
    [
        ("search_test", "search.test.qrels.csv", "search"),
        ("recommendation_test", "recommendation.test.qrels.csv", "recommendation"),
    ],
)
def test_the_official_fixtures_without_a_data_set(
    shared: Path, tmp_path: Path, config: str, qrels: str, fixture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared / "fixtures" / "ranking"
    command = ["--config", config, "--run", f"{folder}/{fixture}_run.csv.gz", "--out", str(tmp_path), "--json"]
    assert run_score(*command, "--qrels", f"{shared}/data/qilin/{qrels}") == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    expected = json.loads((folder / f"{fixture}_expected.json").read_text())
    for measure in ("MRR@10", "MRR@100", "MAP@10", "MAP@100", "Recall@10"):
        assert metrics[measure.lower()] == pytest.approx(expected[measure], abs=1e-9)


def test_labels_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from qilin_tasks.sources.qilin import open_qilin

    monkeypatch.setenv("QILIN_DATA", "sample")
    rows = open_qilin("sample").rows("search_test", ["search_results", "search_result_details_with_idx"])
    lines = []
    for row in rows:
        clicks = {i["note_idx"] for i in row["search_result_details_with_idx"] if i["click"] > 0}
        for note in dict.fromkeys(row["search_results"]):
            lines.append(f"{row['row']} Q0 {note} 1 {float(note in clicks)} oracle")
    (tmp_path / "oracle.run").write_text("\n".join(lines))
    command = ["--config", "search_test", "--run", f"{tmp_path}/oracle.run", "--out", str(tmp_path), "--json"]
    assert run_score(*command) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["metrics"] == {**printed["metrics"], "mrr@10": 1.0, "map@10": 1.0, "ndcg@10": 1.0, "recall@10": 1.0}
    assert printed["name"] == "oracle"
    assert printed["queries_without_labels"] == 1
    assert run_score(*command, "--rows", "5") == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"config": "search"}, "config 'search': choose from dqa, recommendation_test, search_test"),
        ({"rows": "0"}, "--rows 0: must be at least 1"),
        ({"run": "nowhere.csv"}, "nowhere.csv: no such file"),
        ({"qrels": "nowhere.csv"}, "nowhere.csv: no such file"),
    ],
)
def test_wrong_usage(files: Path, changed: dict[str, str], message: str) -> None:
    with pytest.raises(QilinTasksError, match=message):
        run_score(*arguments(files, **changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN + "0,7,nan\n", "1 score.s. of the run are NaN, first: query 0, candidate 7"),
        (RUN + "0,2,5\n", "repeated, first: query 0, candidate 2"),
        ("50,1,1\n", "none in common: use the row number"),
    ],
)
def test_bad_runs(files: Path, text: str, message: str) -> None:
    (files / "mine.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        run_score(*arguments(files))
    assert not (files / "out").exists()


def test_text_ids_have_no_rows(files: Path) -> None:
    (files / "mine.csv").write_text("a,1,1\n")
    with pytest.raises(SettingError, match="no row numbers"):
        run_score(*arguments(files), "--rows", "5")


@pytest.mark.parametrize("shift", [1, -3])
def test_shifted_qrels_are_named(shared: Path, tmp_path: Path, shift: int) -> None:
    with gzip.open(shared / "fixtures" / "ranking" / "search_run.csv.gz", "rt") as file:
        header, *lines = file.read().splitlines()
    moved = [f"{int(line.split(',')[0]) + 10 - shift},{line.split(',', 1)[1]}" for line in lines]
    (tmp_path / "moved.csv").write_text("\n".join([header, *moved]))
    qrels = [line.split(",") for line in (shared / "data/qilin/search.test.qrels.csv").read_text().splitlines()[1:]]
    (tmp_path / "qrels.csv").write_text("".join(f"{int(query) + 10},{note}\n" for query, note in qrels))
    with pytest.raises(DataError, match=rf"shifted by \{shift:+d}: the qrels and the run count rows differently"):
        run_score(
            *["--config", "search_test", "--run", f"{tmp_path}/moved.csv"],
            *["--qrels", f"{tmp_path}/qrels.csv", "--out", str(tmp_path)],
        )


def test_an_unwritable_folder_is_named(files: Path) -> None:
    (files / "out").write_text("a file")
    with pytest.raises(DataError, match="can't be written"):
        run_score(*arguments(files))


def test_dqa_labels_come_from_its_impressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qilin_tasks.ranking.requests import labels
    from qilin_tasks.sources.qilin import open_qilin

    details = pa.list_(pa.struct({"note_idx": pa.int64(), "click": pa.float64()}))
    table = pa.table(
        {
            "search_result_details_with_idx": pa.array(
                [[{"note_idx": 3, "click": 1.0}, {"note_idx": 4, "click": 0.0}, {"note_idx": 3, "click": 2.0}], None],
                type=details,
            )
        }
    )
    (tmp_path / "dqa").mkdir()
    pq.write_table(table, tmp_path / "dqa" / "train-00000-of-00001.parquet")
    assert labels(open_qilin(str(tmp_path)), "dqa") == ([0, 0], [3, 3])


def test_published_numbers_are_whole() -> None:
    rows = published()
    assert {row.config for row in rows} == set(CONFIGS)
    assert len(published_for("search_test")) == len(published_for("recommendation_test")) == 5
    assert all(len(published_for("dqa", condition)) == 5 for condition in CONDITIONS)
    assert all("2503.00501" in row.source for row in rows)
    dcn = next(row for row in published_for("search_test") if row.system == "DCN-V2")
    assert dcn.values == {"mrr@10": 0.56, "mrr@100": 0.5653, "map@10": 0.4014, "map@100": 0.4683}
    glm = next(row for row in published_for("dqa", "bert") if row.system == "GLM4")
    assert glm.values == {"rouge_l": 0.366, "bertscore_f1": 0.713}


def test_published_numbers_are_the_documents(shared: Path) -> None:
    text = (shared / "docs" / "qilin-dataset.md").read_text(encoding="utf-8")
    for row in published():
        for value in row.values.values():
            assert f"{value:.3f}"[1:] in text or f"{value:.4f}"[1:] in text
