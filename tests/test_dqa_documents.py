"""Rows to documents: which rows are asked, which notes are shown, and what stops before anything is generated."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.dqa_folder import DQA_SCHEMA, dqa_row, prepared, real_notes, write_config, write_dqa, write_real_notes
from test_settings import settings

from qilin_tasks.dqa.documents import ACTION_COLUMNS, build_dqa, is_answered
from qilin_tasks.errors import DataError, SettingError

NOTES = [
    ("甲", "第一篇"),
    ("乙", "第二篇"),
    (None, "第三篇没有标题"),
    ("丁", None),
    ("戊", "很长" * 400),
    ("己", "第六篇"),
]


def rows():
    return [
        dqa_row(0, query="未触发", dqa_output="-1"),
        dqa_row(
            1,
            query="问一",
            dqa_output="答一",
            ref_note_idx_list=[4, 1, 4],
            bm25_results=[[5.0, 9.5], [0.0, 8.0], [5.0, 7.0], [1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [4.0, 0.5]],
            dpr_results=[[2.0, 0.9]],
            is_content_clk=1.0,
        ),
        dqa_row(2, query="空白", dqa_output="  "),
        dqa_row(3, query="空", dqa_output=None),
        dqa_row(4, query="问二", dqa_output="答二", bm25_results=[], dpr_results=None, is_like_clk=-1.0),
    ]


@pytest.fixture
def folder(tmp_path):
    return write_dqa(tmp_path, rows(), NOTES)


def shown(documents):
    return {doc["doc_key"]: [note["note_idx"] for note in doc["notes"]] for doc in documents}


@pytest.mark.parametrize("output", ["-1", " -1 ", "", "  ", "\u200b", None])
def test_rows_without_an_answer(output):
    assert not is_answered({"dqa_output": output})


@pytest.mark.parametrize(
    ("context", "notes"),
    [
        ("na", {1: [], 4: []}),
        ("bm25", {1: [5, 0, 1, 2, 3], 4: []}),
        ("bert", {1: [2], 4: []}),
        ("oracle", {1: [4, 1], 4: []}),
    ],
)
def test_conditions(folder, context, notes):
    assert shown(build_dqa(settings(context=context), spec=str(folder))) == notes


def test_top_k_and_engaged(folder):
    documents = build_dqa(settings(context="bm25", top_k=2, answers="engaged"), spec=str(folder))
    assert shown(documents) == {1: [5, 0]}


def test_documents_know_whether_the_user_acted(folder):
    documents = build_dqa(settings(context="na"), spec=str(folder))
    assert [(doc["doc_key"], doc["engaged"]) for doc in documents] == [(1, True), (4, False)]


@pytest.mark.parametrize("drop", [ACTION_COLUMNS, ACTION_COLUMNS[2:3]])
def test_a_copy_without_all_actions_does_not_know(tmp_path, drop):
    spec = str(write_dqa(tmp_path, rows(), NOTES, drop=drop))
    assert [doc["engaged"] for doc in build_dqa(settings(context="na"), spec=spec)] == [None, None]
    with pytest.raises(DataError, match=f"dqa.{drop[0]}: missing"):
        build_dqa(settings(context="na", answers="engaged"), spec=spec)


def test_a_document_is_what_the_prompt_and_the_metrics_need(folder):
    document = build_dqa(settings(context="oracle", note_chars=30), spec=str(folder))[0]
    assert {key: document[key] for key in ("doc_key", "search_idx", "query", "reference")} == {
        "doc_key": 1,
        "search_idx": 1001,
        "query": "问一",
        "reference": "答一",
    }
    assert document["notes"][0]["trimmed"] and not document["notes"][1]["trimmed"]
    assert len(document["notes"][0]["title"] + document["notes"][0]["content"]) == 30


def test_na_never_opens_the_notes(tmp_path):
    write_config(tmp_path, "dqa", rows(), DQA_SCHEMA)
    assert len(build_dqa(settings(context="na"), spec=str(tmp_path))) == 2
    with pytest.raises(DataError, match="'notes'"):
        build_dqa(settings(context="oracle"), spec=str(tmp_path))


def test_a_changed_folder_is_read_again(folder):
    before = build_dqa(settings(context="na"), spec=str(folder))
    write_dqa(folder, [*rows(), dqa_row(5, query="新", dqa_output="新答")], NOTES)
    assert len(build_dqa(settings(context="na"), spec=str(folder))) == len(before) + 1


def test_one_pass_over_the_notes_serves_all_conditions(folder, monkeypatch):
    from qilin_tasks.sources.qilin import QilinSource

    calls = []
    real = QilinSource.notes
    monkeypatch.setattr(QilinSource, "notes", lambda self, ids, **kw: calls.append(set(ids)) or real(self, ids, **kw))
    for context in ("na", "bm25", "bert", "oracle"):
        build_dqa(settings(context=context), spec=str(folder))
    assert calls == [{0, 1, 2, 3, 4, 5}]


@pytest.mark.parametrize(("context", "column"), [("bm25", "bm25_results"), ("bert", "dpr_results")])
def test_a_release_without_rankings_names_the_command(tmp_path, context, column):
    write_dqa(tmp_path, rows(), NOTES, drop=[column])
    with pytest.raises(DataError, match=rf"no column '{column}'.*qilin-tasks prepare --config dqa --retriever"):
        build_dqa(settings(context=context), spec=str(tmp_path))
    assert build_dqa(settings(context="oracle"), spec=str(tmp_path))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"ref_note_idx_list": [6]}, r"6"),
        ({"ref_note_idx_list": [-2]}, r"-2"),
        ({"bm25_results": [[99.0, 1.0]]}, r"99"),
    ],
)
def test_note_ids_that_are_not_in_the_corpus(tmp_path, bad, message):
    write_dqa(tmp_path, [dqa_row(0, query="问", dqa_output="答", **bad)], NOTES)
    with pytest.raises(DataError, match=message):
        build_dqa(settings(context="bm25" if "bm25_results" in bad else "oracle"), spec=str(tmp_path))


def test_no_answered_row(tmp_path):
    write_dqa(tmp_path, rows()[:1], NOTES)
    with pytest.raises(DataError, match=r"none of the 1 rows of 'dqa' holds an answer"):
        build_dqa(settings(context="na"), spec=str(tmp_path))


def test_no_engaged_row(tmp_path):
    write_dqa(tmp_path, [rows()[4]], NOTES)
    with pytest.raises(DataError, match=r"is_like_clk.*is positive"):
        build_dqa(settings(context="na", answers="engaged"), spec=str(tmp_path))


def test_a_reference_without_words_is_an_error_in_the_data(tmp_path):
    write_dqa(tmp_path, [dqa_row(0, query="问", dqa_output="。！🙂")], NOTES)
    with pytest.raises(DataError, match="1 of 1 reference answers have no tokens"):
        build_dqa(settings(context="na"), spec=str(tmp_path))


def test_a_missing_folder_and_a_missing_config(tmp_path):
    with pytest.raises(SettingError, match="nowhere"):
        build_dqa(settings(context="na"), spec=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="'dqa'"):
        build_dqa(settings(context="na"), spec=str(tmp_path))


def test_a_truncated_file(folder):
    path = folder / "notes" / "train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"notes.*train-00000-of-00001\.parquet"):
        build_dqa(settings(context="bm25"), spec=str(folder))


def test_json_columns_that_do_not_parse(tmp_path):
    table = pq.read_table(write_dqa(tmp_path, rows(), NOTES) / "dqa" / "train-00000-of-00001.parquet").to_pylist()
    table[1]["bm25_results"] = "[[1, 2.0], [3"
    keep = {**{name: DQA_SCHEMA.field(name).type for name in DQA_SCHEMA.names}}
    import pyarrow as pa

    for row in table:
        row["bm25_results"] = (
            json.dumps(row["bm25_results"]) if isinstance(row["bm25_results"], list) else row["bm25_results"]
        )
    keep["bm25_results"] = pa.string()
    write_config(tmp_path, "dqa", table, pa.schema(keep))
    with pytest.raises(DataError, match="bm25_results"):
        build_dqa(settings(context="bm25"), spec=str(tmp_path))


def test_the_sample_has_the_awkward_rows_and_enough_of_the_others():
    documents = build_dqa(settings(context="oracle"), spec="sample")
    engaged = build_dqa(settings(context="oracle", answers="engaged"), spec="sample")
    assert len(documents) >= 16 and 10 <= len(engaged) < len(documents)
    assert any(not doc["notes"] for doc in documents), "an answered row without references"
    assert any(note["trimmed"] for doc in documents for note in doc["notes"]), "a note past the budget"
    assert all(doc["query"] and doc["reference"] not in ("", "-1") for doc in documents)


def test_real_notes_are_trimmed_at_the_budget_and_never_emptied(tmp_path, shared):
    folder = write_real_notes(tmp_path, shared)
    documents = build_dqa(settings(context="bm25", note_chars=300, context_chars=1200), spec=str(folder))
    texts = [note for doc in documents for note in doc["notes"]]
    assert len(documents) == 40
    assert all(len(doc["notes"]) == 5 for doc in documents)
    assert all(len(note["title"] + note["content"]) <= 300 for note in texts)
    assert all(sum(len(n["title"] + n["content"]) for n in doc["notes"]) <= 1200 for doc in documents)
    assert all(note["content"] for note in texts)
    assert not any("[话题]" in note["title"] + note["content"] for note in texts)
    longer_than_shown = sum(note["trimmed"] for note in texts)
    assert 0 < longer_than_shown < len(texts)
    assert len(real_notes(shared)) == 798


def test_impossible_citations_are_dropped_and_counted(tmp_path, caplog):
    cited = dqa_row(1, query="问", dqa_output="答", ref_note_idx_list=[None, 4, -1, 99, 1])
    write_dqa(tmp_path, [cited, dqa_row(2, query="问", dqa_output="答", ref_note_idx_list=[0])], NOTES)
    assert shown(build_dqa(settings(context="oracle"), spec=str(tmp_path))) == {0: [4, 1], 1: [0]}
    assert "left out 3 cited ids of 1 rows that no note can have (-1 in row 0)" in caplog.text


def test_a_row_without_a_possible_citation_stops_only_oracle(tmp_path):
    write_dqa(tmp_path, [dqa_row(1, query="问", dqa_output="答", ref_note_idx_list=[None, -1])], NOTES)
    assert build_dqa(settings(context="na"), spec=str(tmp_path))
    with pytest.raises(DataError, match=r"dqa row 0, ref_note_idx_list: none of its ids \[-1, -1\] can be a note"):
        build_dqa(settings(context="oracle"), spec=str(tmp_path))


def test_a_run_must_be_what_the_condition_says(folder):
    bm25 = prepared(folder, "bm25", {1: [(3, 1.0)], 4: []})
    dense = prepared(folder, "dense", {1: [(2, 1.0)], 4: [(5, 1.0)]})
    fused = prepared(folder, "rrf", {1: [(1, 1.0)], 4: [(0, 1.0)]})
    spec = str(folder)
    assert shown(build_dqa(settings(context="bm25", contexts=bm25), spec=spec)) == {1: [3], 4: []}
    for context, path, made in (("bert", bm25, "bm25"), ("bm25", dense, "dense"), ("bm25", fused, "rrf")):
        with pytest.raises(SettingError, match=rf"the retriever '{made}' made this run, and the context '{context}'"):
            build_dqa(settings(context=context, contexts=path), spec=spec)
    each = {"bm25": bm25, "bert": dense}
    assert shown(build_dqa(settings(context="bert", contexts=each), spec=spec)) == {1: [2], 4: [5]}
    assert shown(build_dqa(settings(context="bm25", contexts=each), spec=spec)) == {1: [3], 4: []}
    assert shown(build_dqa(settings(context="contexts", contexts=fused), spec=spec)) == {1: [1], 4: [0]}
    # Conditions without a run of their own show what they always do.
    assert shown(build_dqa(settings(context="bert", contexts={"bm25": bm25}), spec=spec))[1] == [2]
    assert shown(build_dqa(settings(context="na", contexts=bm25), spec=spec)) == {1: [], 4: []}


def test_the_signature_names_retriever_and_digest_of_a_run(folder):
    from qilin_tasks.dqa.scorer import DQAScorer

    bm25 = prepared(folder, "bm25", {1: [(3, 1.0)], 4: []})
    parts = DQAScorer(settings(context="bm25", contexts=bm25)).document_parts()
    digest = hashlib.sha256(Path(bm25).read_bytes()).hexdigest()[:12]
    assert parts["ctx"] == f"bm25(bm25@{digest})"
    assert DQAScorer(settings(context="bm25")).document_parts()["ctx"] == "bm25"
    assert DQAScorer(settings(context="na", contexts=bm25)).document_parts()["ctx"] == "na"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"context": "contexts"}, "context 'contexts' shows the notes of a run"),
        (
            {"context": "bm25", "contexts": {"bm26": "x"}},
            "contexts: condition 'bm26': choose from bert, bm25, contexts",
        ),
    ],
)
def test_contexts_that_name_nothing(chosen, message):
    with pytest.raises(SettingError, match=message):
        settings(**chosen)
