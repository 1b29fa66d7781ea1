from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from qilin_tasks.errors import DataError
from qilin_tasks.sources.runs import read_qrels, read_run, write_run


def test_a_written_run_is_read_back(tmp_path: Path) -> None:
    for name in ("a.run", "a.run.gz"):
        write_run(tmp_path / name, [("q1", [("d2", 0.1 + 0.2), ("d1", -1.0)]), ("q2", [])], name="my system")
        run = read_run(tmp_path / name)
        assert run.query_ids.tolist() == ["q1", "q1"]
        assert run.candidate_ids.tolist() == ["d2", "d1"]
        assert run.scores.tolist() == [0.1 + 0.2, -1.0]
        assert run.name == "my_system"
    assert (tmp_path / "a.run").read_text() == "q1 Q0 d2 1 0.30000000000000004 my_system\nq1 Q0 d1 2 -1.0 my_system\n"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("old")

    def rankings():
        yield 1, [(2, 1.0)]
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_run(path, rankings(), name="x")
    assert [file.name for file in tmp_path.iterdir()] == ["a.run"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    "text",
    [
        "qid,pid,score\n0,7,2.5\n0,8,1\n",
        "0,7,2.5\n\n0,8,1\n",
        "score,pid,qid\n2.5,7,0\n1,8,0\n",
        "\ufeffqid,pid,score\n0,7,2.5\n0,8,1",
    ],
)
def test_csv_with_and_without_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "dcn.csv").write_text(text, encoding="utf-8")
    run = read_run(tmp_path / "dcn.csv")
    assert (run.query_ids.tolist(), run.candidate_ids.tolist(), run.scores.tolist()) == ([0, 0], [7, 8], [2.5, 1.0])
    assert run.name == "dcn"


@pytest.mark.parametrize(
    "text", ["qid,pid\n0,7\n0,7\n", "0 0 7 1\n0\t0\t9\t0\n0 0 7 2\n", "qid,pid,label\n0,7,1\n0,9,0\n0,7,1\n"]
)
def test_qrels_keep_repeated_rows_and_leave_zeros_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "qrels").write_text(text)
    qrels = read_qrels(tmp_path / "qrels")
    assert (qrels.query_ids.tolist(), qrels.candidate_ids.tolist()) == ([0, 0], [7, 7])


def test_the_official_qrels(shared: Path) -> None:
    sizes = {"search.test": (27597, 6192), "recommendation.test": (44685, 11115), "dqa": (19277, 6017)}
    for name, (pairs, queries) in sizes.items():
        qrels = read_qrels(shared / "data" / "qilin" / f"{name}.qrels.csv")
        assert (len(qrels.query_ids), len(set(qrels.query_ids.tolist()))) == (pairs, queries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row"),
        ("0 Q0 7 1 2.5 x\n0 Q0 7\n", "line 2: '0 Q0 7' is neither"),
        ("0,7\n", "line 1: '0,7' is neither"),
        ("qid,pid\n0,7\n", "line 1: 'qid,pid' is neither"),
        ("qid,pid,score\n0,7,high\n", "line 2: 'high' is not a number"),
        ('[{"qid": 1}, 2]\n', "is neither"),
    ],
)
def test_malformed_runs_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.run").write_text(text)
    with pytest.raises(DataError, match=message):
        read_run(tmp_path / "bad.run")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_run(tmp_path / "none.run")
    (tmp_path / "plain.gz").write_text("0 Q0 7 1 2.5 x\n")
    with pytest.raises(DataError, match="can't be read"):
        read_run(tmp_path / "plain.gz")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"0 Q0 7 1 2.5 x\n" * 100)[:-10])
    with pytest.raises(DataError, match="can't be read"):
        read_run(tmp_path / "cut.gz")
    (tmp_path / "bytes.run").write_bytes(b"\xff\xfe0 Q0")
    with pytest.raises(DataError, match="can't be read"):
        read_run(tmp_path / "bytes.run")
    with pytest.raises(DataError, match="can't be read"):
        read_run(tmp_path)
