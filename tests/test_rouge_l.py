"""ROUGE-L: rouge-score's numbers for any tokenizer, and a score for anything a model writes."""

from __future__ import annotations

import importlib.metadata
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.metrics.answer import answer_chars, empty_rate, unfinished_reasoning_rate
from qilin_tasks.metrics.rouge_l import (
    RougeL,
    check_references,
    rouge_l,
    rouge_l_batch,
    rouge_signature,
    rouge_tokenizer,
)
from qilin_tasks.text.tokens import TOKENIZERS, Tokenizer, tokenize_chars, tokenize_jieba

TEXT = st.text(st.sampled_from("很好用的,。 abcAB12ก้é㎡😀\ud83d"), max_size=40)
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)
BAD_OUTPUTS = [
    None,
    "",
    " \n",
    "😀🎉",
    "，。！",
    "\ud83d",
    "\x00\x1b[0m\x07",
    "</p><br/>",
    "好" * 100_000,
    "-" * 100_000,
]


def reference_score(hypothesis: str, reference: str, tokenizer: Tokenizer) -> RougeL:
    class Adapter:
        tokenize = staticmethod(tokenizer)

    score = rouge_scorer.RougeScorer(["rougeL"], tokenizer=Adapter()).score(reference, hypothesis)["rougeL"]
    return RougeL(score.precision, score.recall, score.fmeasure)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenizer", "expected"),
    [
        ("防晒霜", "防晒霜", tokenize_chars, RougeL(1, 1, 1)),
        ("防晒", "防晒霜很好", tokenize_chars, RougeL(1, 2 / 5, 4 / 7)),
        ("霜晒防", "防晒霜", tokenize_chars, RougeL(1 / 3, 1 / 3, 1 / 3)),
        ("SPF50的防晒霜", "spf50防晒", tokenize_chars, RougeL(3 / 5, 1, 3 / 4)),
        ("北京大学", "清华大学", tokenize_chars, RougeL(1 / 2, 1 / 2, 1 / 2)),
        ("北京大学", "清华大学", tokenize_jieba, RougeL(0, 0, 0)),
        ("我来到北京", "我来到清华大学", tokenize_jieba, RougeL(2 / 3, 2 / 3, 2 / 3)),
    ],
)
def test_fractions(hypothesis: str, reference: str, tokenizer: Tokenizer, expected: RougeL) -> None:
    assert rouge_l(hypothesis, reference, tokenizer=tokenizer) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    # rouge-score 0.1.2, with class T: tokenize = staticmethod(tokenize_chars or tokenize_jieba):
    # rouge_scorer.RougeScorer(["rougeL"], tokenizer=T()).score(REFERENCE, HYPOTHESIS)["rougeL"].fmeasure
    [(tokenize_chars, 0.4155844155844156), (tokenize_jieba, 0.3555555555555555)],
)
def test_golden(tokenizer: Tokenizer, expected: float) -> None:
    hypothesis = "油皮夏天建议选清爽的防晒霜，比如SPF50+的安热沙，成膜快不搓泥；敏感肌可以试试物理防晒。"
    reference = "夏天油皮可以选择安热沙小金瓶（SPF50+），质地清爽、成膜快；如果是敏感肌，推荐物理防晒，更温和不刺激。"
    assert rouge_l(hypothesis, reference, tokenizer=tokenizer).f1 == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(TEXT | ANY_TEXT, TEXT | ANY_TEXT, st.sampled_from(sorted(TOKENIZERS)))
def test_rouge_scores_numbers(hypothesis: str, reference: str, name: str) -> None:
    tokenizer = TOKENIZERS[name]
    ours = rouge_l(hypothesis, reference, tokenizer=tokenizer)
    assert ours == pytest.approx(reference_score(hypothesis, reference, tokenizer), abs=1e-12)
    assert all(0 <= value <= 1 for value in ours)
    swapped = rouge_l(reference, hypothesis, tokenizer=tokenizer)
    assert (swapped.precision, swapped.recall) == (ours.recall, ours.precision)


@settings(deadline=None)
@given(TEXT | ANY_TEXT)
def test_a_text_against_itself(text: str) -> None:
    expected = 1.0 if tokenize_chars(text) else 0.0
    assert rouge_l(text, text).f1 == expected
    assert rouge_l(text, text + "。") == rouge_l(text, text)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=8), st.integers(0, 6))
def test_batch_gives_each_pair_its_value(pairs: list[tuple[str, str]], few: int) -> None:
    """Also when codes are renewed between pairs, and when a pair is too long for codes."""
    expected = [rouge_l(hypothesis, reference).f1 for hypothesis, reference in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qilin_tasks.metrics.rouge_l._FEW", few)
        assert rouge_l_batch([h for h, _ in pairs], [r for _, r in pairs]) == expected


def test_more_distinct_words_than_codes() -> None:
    words = [f"w{i}" for i in range(140_000)]
    score = rouge_l(" ".join(words), " ".join(words[1::14_000]))
    assert score == pytest.approx(RougeL(10 / 140_000, 1.0, 20 / 140_010), abs=1e-15)


@pytest.mark.parametrize("output", BAD_OUTPUTS, ids=range(len(BAD_OUTPUTS)))
@pytest.mark.parametrize("name", sorted(TOKENIZERS))
def test_bad_output_has_a_score(output: str | None, name: str) -> None:
    (value,) = rouge_l_batch([output], ["用防晒霜很好"], tokenizer=TOKENIZERS[name])
    assert 0 <= value < 0.1


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        rouge_l_batch(["a"], [])


def test_references_with_tokens_pass() -> None:
    check_references(["好", "a", "1", "สวัสดี", "한"], keys=[1, 2, 3, 4, 5])


def test_references_without_tokens_are_all_named() -> None:
    with pytest.raises(DataError, match=r"3 of 4 reference answers.*'q2' \('😀'\), 'q3' \(''\), 'q4' \(''\)\. "):
        check_references(["好", "😀", None, ""], keys=["q1", "q2", "q3", "q4"])
    with pytest.raises(DataError, match=r"12 of 12 .* and 2 more"):
        check_references(["…"] * 12)


def test_signature_names_tokenizer_and_tool() -> None:
    assert rouge_signature("char") == "rougeL:char+rouge-score0.1.2"
    assert rouge_signature("jieba") == "rougeL:jieba0.42.1+rouge-score0.1.2"
    assert importlib.metadata.version("rouge-score") == "0.1.2", "the numbers above were compared with this version"


def test_unknown_names_give_the_choices() -> None:
    with pytest.raises(SettingError, match="ROUGE tokenizer 'word': choose from char, jieba"):
        rouge_tokenizer("word")


def test_facts_about_answers() -> None:
    assert answer_chars([" 很好 \n", "😀", None, "a\ud800"]) == [2, 1, 0, 2]
    assert empty_rate(["很好", " \n\u3000", "", None, "。"]) == [0, 1, 1, 1, 0]
    assert unfinished_reasoning_rate([True, False]) == [1, 0]
    assert math.fsum(empty_rate([])) == 0
