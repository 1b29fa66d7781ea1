"""Candidate pools: the official protocol by hand, on real data, and what bad records do."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.reqa.pools import Pool, build_document_pool, build_pool, load_pool
from qilin_tasks.sources.beir import assemble
from qilin_tasks.sources.reqa import SETS
from qilin_tasks.sources.squad import Answer, Paragraph, Question


def asked(key: str, text: str, *answers: tuple[str, int]) -> Question:
    return Question(key, text, tuple(Answer(answer, start) for answer, start in answers))


FIRST = "Ann sings. Bob reads. Ann sings."
#        0          11         22
SECOND = "Bob reads. Cy naps."
#         0          11
PARAGRAPHS = [
    Paragraph("A", FIRST, (asked("q1", "Who sings?", ("Ann", 0), ("Ann", 22)), asked("q2", "Who?", ("Bob", 11)))),
    Paragraph("B", SECOND, (asked("q3", "Who?", ("Cy", 11), ("Cy naps", 11), ("naps", 14)),)),
]


def pool(paragraphs: list[Paragraph] | None = None, *, strict: bool = False) -> Pool:
    return build_pool(paragraphs or PARAGRAPHS, name="set", language="en", strict=strict)


def test_index_holds_each_sentence_of_a_paragraph_once() -> None:
    built = pool()
    assert built.candidates == ("Ann sings.", "Bob reads.", "Bob reads.", "Cy naps.")
    assert built.owners == (0, 0, 1, 1)


def test_pairs_and_gold() -> None:
    """q1 has one pair (both its sentences are one index entry); `Who?` was asked twice and is one question."""
    built = pool()
    assert built.pairs == 3
    first, second = built.questions
    assert (first.key, first.sentences, first.gold, first.documents) == ("q1", (0,), (0,), (0,))
    # Any entry with the gold text counts: `Bob reads.` of the other paragraph (2) as well.
    assert (second.key, second.sentences, second.gold, second.documents) == ("q2", (1, 3), (1, 2, 3), (0, 1))
    assert second.answers == ("Bob", "Cy", "Cy naps", "naps")


def test_the_same_paragraph_twice_is_one() -> None:
    built = pool([*PARAGRAPHS, Paragraph("A", FIRST, (asked("q4", "Who reads?", ("Bob", 11)),))])
    assert len(built.candidates) == 4
    assert built.questions[-1].sentences == (1,)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (("Bob", 99), "answer offset outside its paragraph"),
        (("Bob", -1), "answer offset outside its paragraph"),
        (("Bob", 0), "answer offset points at other text"),
        (("", 0), "answer offset points at other text"),
        ((" Bob", 10), "answer offset between sentences"),
    ],
)
def test_wrong_offsets_are_counted_or_stop(
    answer: tuple[str, int], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    paragraphs = [*PARAGRAPHS, Paragraph("C", "Ann sings. Bob reads!", (asked("bad", "Who?!", answer),))]
    with caplog.at_level(logging.WARNING):
        built = pool(paragraphs)
    assert built.problems == {kind: 1, "question without a usable answer": 1}
    assert len(built.questions) == 2
    assert "question 'bad'" in caplog.text and kind in caplog.text
    with pytest.raises(DataError, match=rf"set: question 'bad', answer .* {kind}"):
        pool(paragraphs, strict=True)


def test_a_question_with_one_good_answer_stays() -> None:
    built = pool([Paragraph("A", FIRST, (asked("q1", "Who?", ("Bob", 99), ("Bob", 11)),))])
    assert built.problems == {"answer offset outside its paragraph": 1}
    assert built.questions[0].sentences == (1,)


def test_a_paragraph_without_sentences_is_named() -> None:
    with pytest.raises(DataError, match=r"set: paragraph 2 \('C'\) holds no sentence"):
        pool([*PARAGRAPHS, Paragraph("C", " ", ())])


def test_no_usable_question_is_an_error() -> None:
    with pytest.raises(DataError, match="none of its questions has a usable answer"):
        pool([Paragraph("A", FIRST, (asked("q1", "Who?", ("Bob", 99)),))])


def test_documents_as_candidates() -> None:
    raw = assemble(
        [
            {"_id": "d1", "title": "T", "text": "one"},
            {"_id": "d2", "title": "", "text": "two"},
            {"_id": "d3", "text": "two"},
        ],
        [{"_id": "q1", "text": "a?"}, {"_id": "q2", "text": "b?"}, {"_id": "q3", "text": "unjudged?"}],
        [
            {"query-id": "q1", "corpus-id": "d1", "score": 1},
            {"query-id": "q2", "corpus-id": "d2", "score": "2"},
            {"query-id": "q2", "corpus-id": "d1", "score": 0},
        ],
        where="set",
    )
    built = build_document_pool(raw, name="set", language="en")
    assert built.candidates == ("T one", "two", "two")
    assert [(q.text, q.gold, q.documents) for q in built.questions] == [("a?", (0,), (0,)), ("b?", (1, 2), (1, 2))]
    assert built.pairs == 2


def test_fingerprint_follows_the_pool() -> None:
    assert pool().fingerprint == pool().fingerprint
    changed = [PARAGRAPHS[0], Paragraph("B", "Bob reads. Cy sleeps.", (asked("q3", "Who?", ("Cy", 11)),))]
    assert pool(changed).fingerprint != pool().fingerprint


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_a_sample(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")
    built = load_pool(name, strict=True)
    assert len(built.questions) >= 10
    assert len(built.candidates) >= 10
    assert not built.problems


def test_a_pool_is_built_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQA_DATA", "sample")
    assert load_pool("squad") is load_pool("squad")
    assert load_pool("squad") is not load_pool("squad", strict=True)


# Questions, pairs and index size; the official index of XQuAD-en has 1,174 entries, 1,190 pairs and 1,187 questions.
REAL = {
    "xquad_en": (1187, 1190, 1173),
    "xquad_zh": (1181, 1190, 1204),
    "xquad_th": (1183, 1190, 1218),
    "iapp": (729, 739, 1405),
}


@pytest.mark.parametrize("name", REAL)
def test_real_sets(name: str, shared: Path) -> None:
    built = load_pool(name, spec=str(shared / "data"), strict=True)
    assert (len(built.questions), built.pairs, len(built.candidates)) == REAL[name]
    assert not built.problems


def test_official_sizes_within_one_percent(shared: Path) -> None:
    built = load_pool("xquad_en", spec=str(shared / "data" / "xquad"))
    assert np.allclose((len(built.candidates), built.pairs), (1174, 1190), rtol=0.01)


def test_where_a_set_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"ReQA set 'squat': choose from iapp, mteb_fiqa"):
        load_pool("squat", spec="sample")
    with pytest.raises(DataError, match=r"REQA_DATA .* is no folder: give a folder that holds dev-v1\.1\.json"):
        load_pool("squad", spec=str(tmp_path / "absent"))
    with pytest.raises(DataError, match=r"has neither the file test\.jsonl nor iapp\.test\.jsonl \(or \.gz\)"):
        load_pool("iapp", spec=str(tmp_path))
    with pytest.raises(DataError, match=r"has neither the folder mteb_fiqa nor fiqa"):
        load_pool("mteb_fiqa", spec=str(tmp_path))


def test_offline_hub_is_a_clear_error() -> None:
    with pytest.raises(
        DataError, match=r"rajpurkar/squad can't be read from the hub .*'sample' for the embedded sample"
    ):
        load_pool("squad", spec="hub")
