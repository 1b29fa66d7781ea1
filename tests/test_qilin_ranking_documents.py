from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import evaluation
from support.ranking_folder import recommendation_row, search_row, write_ranking

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.okapi import okapi_scores
from qilin_tasks.ranking.qrels_check import check_qrels
from qilin_tasks.ranking.requests import Request, read_requests, shuffled
from qilin_tasks.ranking.settings import ListwiseSettings, RankingSettings
from qilin_tasks.ranking.windows import merge, windows
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.runs import read_qrels


@pytest.fixture(scope="module")
def defaults() -> dict[str, Any]:
    return evaluation.defaults("qilin/_ranking_yaml")


def listwise(defaults: dict[str, Any], **changed: Any) -> ListwiseSettings:
    return ListwiseSettings.from_metadata({**defaults, "config": "search_test", **changed})


# Documents


def test_candidates_are_distinct_shuffled_and_say_nothing_of_their_exposure(
    tmp_path: Path, defaults: dict[str, Any]
) -> None:
    shown = [5, 3, 9, 3, 1, 7]
    folder = write_ranking(tmp_path, notes=10, search=[search_row(0, shown, [9, 3])])
    (doc,) = build_ranking(listwise(defaults), spec=str(folder))
    ids = [candidate["note_idx"] for candidate in doc["candidates"]]
    assert sorted(ids) == [1, 3, 5, 7, 9]
    assert ids not in (sorted(ids), [5, 3, 9, 1, 7])
    assert {ids[place - 1] for place in doc["relevant"]} == {9, 3}
    assert doc["n_relevant"] == 3  # the impression of 3 is there twice, as its qrels row would be
    assert doc["doc_key"] == 0
    assert {key for candidate in doc["candidates"] for key in candidate} == {"note_idx", "title", "content"}


def test_the_order_of_exposure_changes_nothing(tmp_path: Path, defaults: dict[str, Any]) -> None:
    first = write_ranking(tmp_path / "a", notes=10, search=[search_row(0, [1, 2, 3, 4, 5, 6], [2])])
    second = write_ranking(tmp_path / "b", notes=10, search=[search_row(0, [6, 5, 4, 3, 2, 1], [2])])
    assert build_ranking(listwise(defaults), spec=str(first)) == build_ranking(listwise(defaults), spec=str(second))
    other = build_ranking(listwise(defaults, shuffle_seed=7), spec=str(first))
    assert other != build_ranking(listwise(defaults), spec=str(first))


@settings(deadline=None, max_examples=60)
@given(st.sets(st.integers(0, 10**6), min_size=1, max_size=30), st.integers(0, 100), st.integers().map(random.Random))
def test_shuffling_depends_on_seed_key_and_ids_only(ids: set[int], seed: int, chance: random.Random) -> None:
    order = list(ids)
    chance.shuffle(order)
    assert shuffled(order, seed=seed, key=3) == shuffled(sorted(ids), seed=seed, key=3)
    assert sorted(shuffled(order, seed=seed, key=3)) == sorted(ids)


def test_the_impression_list_stands_in_for_missing_results(tmp_path: Path, defaults: dict[str, Any]) -> None:
    folder = write_ranking(tmp_path, notes=10, search=[search_row(0, [1, 2, 3], [2], search_results=None)])
    (doc,) = build_ranking(listwise(defaults), spec=str(folder))
    assert sorted(candidate["note_idx"] for candidate in doc["candidates"]) == [1, 2, 3]


def test_rows_without_clicks_or_candidates_are_counted_and_left_out(
    tmp_path: Path, defaults: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        search_row(0, [1, 2, 3], []),
        search_row(1, [1, 2, 2, 3], [2]),
        search_row(2, [], []),
        search_row(3, [4, 5], [4]),
    ]
    folder = write_ranking(tmp_path, notes=10, search=rows)
    with caplog.at_level(logging.WARNING):
        docs = build_ranking(listwise(defaults), spec=str(folder))
    assert [doc["doc_key"] for doc in docs] == [1, 3]
    assert "of 4 rows, 1 have no click and 1 no candidate" in caplog.text
    assert "1 repeated candidates were dropped" in caplog.text
    assert [doc["doc_key"] for doc in build_ranking(listwise(defaults, rows=3), spec=str(folder))] == [1]
    assert len(build_ranking(listwise(defaults, rows=None), spec=str(folder))) == 2


def test_no_request_at_all_is_an_error(tmp_path: Path, defaults: dict[str, Any]) -> None:
    folder = write_ranking(tmp_path, notes=10, search=[search_row(0, [1, 2, 3], [])])
    with pytest.raises(DataError, match="no request of 'search_test' can be ranked: of 1 rows, 1 have no click"):
        build_ranking(listwise(defaults), spec=str(folder))


def test_candidates_that_are_no_notes_are_named(tmp_path: Path, defaults: dict[str, Any]) -> None:
    folder = write_ranking(tmp_path, notes=4, search=[search_row(0, [1, 2], [2]), search_row(1, [1, 44], [1])])
    with pytest.raises(DataError, match=r"44 \(search_test row 1, search_results\)"):
        build_ranking(listwise(defaults), spec=str(folder))


def test_history_shows_titles_of_clicked_notes(tmp_path: Path, defaults: dict[str, Any]) -> None:
    row = recommendation_row(0, [1, 2, 3], [2], recent_clicked_note_idxs=[7, 8, 9, 8])
    folder = write_ranking(tmp_path, notes=10, recommendation=[row])
    two = listwise(defaults, config="recommendation_test", history=2)
    (doc,) = build_ranking(two, spec=str(folder))
    # The official code takes the first ten.
    assert doc["history"] == ["标题7", "标题8"]
    assert doc["query"] == "兴趣0"
    none = listwise(defaults, config="recommendation_test", history=0)
    assert build_ranking(none, spec=str(folder))[0]["history"] == []


def test_contents_shrink_before_titles_and_the_budget_holds(tmp_path: Path, defaults: dict[str, Any]) -> None:
    notes = [
        {"note_idx": i, "note_title": f"标题{i:03}", "note_content": "长" * 500, "note_type": 1, "image_path": []}
        for i in range(185)
    ]
    rows = [search_row(0, range(50), [1]), search_row(1, range(185), [1]), search_row(2, range(5), [1])]
    folder = write_ranking(tmp_path, notes=notes, search=rows)
    docs = build_ranking(listwise(defaults, context_chars=3000, window=60, note_chars=200), spec=str(folder))
    for doc in docs:
        sizes = [len(candidate["title"]) + len(candidate["content"]) for candidate in doc["candidates"]]
        assert all(sum(sizes[i - 1] for i in ids) <= 3000 for ids in doc["windows"])
        assert all(
            candidate["title"].startswith("标题") and len(candidate["title"]) == 5 for candidate in doc["candidates"]
        )
        assert doc["candidates_trimmed"] == len(sizes)
    assert [len(doc["windows"]) for doc in docs] == [1, 21, 1]
    assert max(len(ids) for ids in docs[1]["windows"]) <= 60
    assert len(docs[2]["candidates"][0]["content"]) == 195


def test_settings_that_leave_no_room_are_refused(defaults: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"60 candidates \(window\) need at least 1200 characters"):
        listwise(defaults, context_chars=1000)
    with pytest.raises(SettingError, match="config 'dqa': choose from recommendation_test, search_test"):
        listwise(defaults, config="dqa")
    with pytest.raises(SettingError, match="window 1: must be at least 2"):
        listwise(defaults, window=1)
    with pytest.raises(SettingError, match="rows 0: must be at least 1"):
        RankingSettings.from_metadata({**defaults, "config": "search_test", "rows": 0})


def test_the_first_stage_is_bm25_over_characters_of_the_list(tmp_path: Path, defaults: dict[str, Any]) -> None:
    texts = ["露营必备天幕", "天幕怎么搭，露营新手看过来", "空气炸锅鸡翅", "露营装备清单"]
    notes = [
        {"note_idx": i, "note_title": text, "note_content": None, "note_type": 1, "image_path": None}
        for i, text in enumerate(texts)
    ]
    folder = write_ranking(tmp_path, notes=notes, search=[search_row(0, [3, 1, 0, 2], [0], query="露营必备")])
    (doc,) = build_ranking(listwise(defaults), spec=str(folder))
    order = [doc["candidates"][place - 1]["note_idx"] for place in doc["first_stage"]]
    assert order == [0, 3, 1, 2]


def test_okapi_is_rank_bm25s() -> None:
    # rank_bm25 0.2.2: BM25Okapi([list(d) for d in documents]).get_scores(list("露营必备"))
    documents = ["露营必备天幕", "天幕怎么搭，露营新手看过来", "空气炸锅鸡翅", "露营装备清单"]
    expected = [1.2771582799822079, 0.22997835415330473, 0.0, 0.3340260116876544]
    assert okapi_scores("露营 必备", documents) == pytest.approx(expected, abs=1e-12)
    assert okapi_scores("", documents) == [0.0] * 4
    assert okapi_scores("露营", ["", ""]) == [0.0, 0.0]


# Official qrels


def requests(n: int) -> list[Request]:
    return [Request(i, 5000 + 7 * i, "q", (), (i, i + 1), frozenset({i + 1, 100 + i}), 2) for i in range(n)]


def write_qrels(path: Path, rows: list[Request], *, key: Any = lambda request: request.row) -> Path:
    lines = [f"{key(request)},{note}" for request in rows for note in sorted(request.clicked)]
    path.write_text("\n".join(["qid,pid", *lines]))
    return path


def test_qrels_that_agree_pass_and_few_differences_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = requests(200)
    qrels = read_qrels(write_qrels(tmp_path / "q.csv", rows))
    assert check_qrels(rows, qrels, where="q.csv") == 0
    odd = [Request(7, 0, "q", (), (1,), frozenset({1}), 1), *rows[:7], *rows[8:]]
    with caplog.at_level(logging.WARNING):
        assert check_qrels(odd, qrels, where="q.csv") == 1
    assert "1 of 200 requests differ" in caplog.text


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (lambda request: request.row + 3, r"when the row number is shifted by \+3 \(200 of 200\)"),
        (lambda request: request.row - 1, r"shifted by -1"),
        (lambda request: request.request_id, "they agree by the request's id, not by the row number"),
        (lambda request: request.row * 1000 + 77, "different releases"),
    ],
)
def test_a_shift_is_named(tmp_path: Path, key: Any, message: str) -> None:
    rows = requests(200)
    qrels = read_qrels(write_qrels(tmp_path / "q.csv", rows, key=key))
    with pytest.raises(DataError, match=message):
        check_qrels(rows, qrels, where="q.csv")


def test_the_setting_qrels_checks_the_rows(tmp_path: Path, defaults: dict[str, Any]) -> None:
    folder = write_ranking(tmp_path, notes=9, search=[search_row(i, [1, 2, 3, 4], [1 + i % 4]) for i in range(4)])
    (tmp_path / "good.csv").write_text("qid,pid\n0,1\n1,2\n2,3\n3,4\n")
    (tmp_path / "bad.csv").write_text("qid,pid\n1,1\n2,2\n3,3\n4,4\n")
    assert len(build_ranking(listwise(defaults, qrels=str(tmp_path / "good.csv")), spec=str(folder))) == 4
    with pytest.raises(DataError, match=r"bad.csv: the clicks of 4 of 4 requests differ.*shifted by \+1"):
        build_ranking(listwise(defaults, qrels=str(tmp_path / "bad.csv")), spec=str(folder))


def test_the_sample_has_both_configs() -> None:
    source = open_qilin("sample")
    assert len(read_requests(source, "search_test", rows=None)) >= 10
    assert len(read_requests(source, "recommendation_test", rows=None)) >= 10


# Windows


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 220), st.integers(4, 70))
def test_every_two_candidates_share_a_window(n: int, size: int) -> None:
    shown = windows(n, size=size)
    assert all(len(ids) <= size and ids == sorted(set(ids)) for ids in shown)
    assert {i for ids in shown for i in ids} == set(range(1, n + 1))
    if n <= size:
        assert len(shown) == bool(n)
    elif n <= 60:
        pairs = {(a, b) for ids in shown for a in ids for b in ids}
        assert len(pairs) == n * n


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 60), st.integers(3, 20), st.integers().map(random.Random))
def test_a_ranker_with_one_order_in_mind_gets_it_back(n: int, size: int, chance: random.Random) -> None:
    order = list(range(1, n + 1))
    chance.shuffle(order)
    shown = windows(n, size=size)
    rankings = [[i for i in order if i in ids] for ids in map(set, shown)]
    assert merge(rankings, shown, n=n) == order


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 50), st.integers(3, 20), st.integers().map(random.Random))
def test_an_oracle_without_an_order_inside_its_groups_puts_every_relevant_candidate_first(
    n: int, size: int, chance: random.Random
) -> None:
    relevant = {i for i in range(1, n + 1) if chance.random() < 0.3}
    shown = windows(n, size=size)
    rankings = []
    for ids in shown:
        mixed = list(ids)
        chance.shuffle(mixed)
        rankings.append(sorted(mixed, key=lambda i: i not in relevant))
    merged = merge(rankings, shown, n=n)
    assert set(merged[: len(relevant)]) == relevant
    assert sorted(merged) == list(range(1, n + 1))


def test_what_no_window_ranked_is_left_out() -> None:
    shown = windows(6, size=4)
    assert shown == [[1, 2, 3, 4], [1, 2, 5, 6], [3, 4, 5, 6]]
    assert merge([[4], [], [4, 6]], shown, n=6) == [4, 6]
    assert merge([[], [], []], shown, n=6) == []
    assert merge([[2, 1]], [[1, 2, 3]], n=3) == [2, 1]
