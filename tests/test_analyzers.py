"""Analyzers against Lucene's behaviour; the terms were worked out by hand from its grammar and filters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.errors import SettingError
from qilin_tasks.text.analyzers import ANALYZERS, analyzer, fold_width, lower_case
from qilin_tasks.text.standard_tokenizer import standard_tokens
from qilin_tasks.text.stop_words import CJK_STOP_WORDS, ENGLISH_STOP_WORDS

WORDS = [
    ("", []),
    ("  ，。！\n", []),
    ("don't U.S.A. 3.14,5 a_b _ __", ["don't", "U.S.A", "3.14,5", "a_b"]),
    ("入秋了", ["入", "秋", "了"]),
    ("2023年ZARA", ["2023", "年", "ZARA"]),
    ("カタカナ ひら カ_", ["カタカナ", "ひ", "ら", "カ_"]),
    ("한국어 한국abc", ["한국어", "한국abc"]),
    ("人々", ["人", "々"]),
    ("❤️好👩‍👩‍👧👍🏻🇨🇳🇯🇵©", ["❤️", "好", "👩‍👩‍👧", "👍🏻", "🇨🇳", "🇯🇵", "©"]),
    ("1️⃣2 #️⃣ #", ["1️⃣2", "#️⃣"]),
    ("ประเทศไทย", ["ประเทศไทย"]),
    ("צה\"ל ג'", ['צה"ל', "ג'"]),
    ("cafe\u0301s", ["cafe\u0301s"]),
    ("１２，３４", ["１２，３４"]),
]


@pytest.mark.parametrize(("text", "tokens"), WORDS)
def test_tokens_are_those_of_lucenes_standard_tokenizer(text: str, tokens: list[str]) -> None:
    assert [text[start:end] for start, end, _ in standard_tokens(text)] == tokens


def test_a_long_token_is_cut_at_255_utf16_units() -> None:
    assert [end - start for start, end, _ in standard_tokens("a" * 600)] == [255, 255, 90]
    assert [end - start for start, end, _ in standard_tokens("𝒜" * 130)] == [127, 3]


ZH = [
    ("趁着刚入秋", ["趁着", "着刚", "刚入", "入秋"]),
    ("好", ["好"]),
    ("好 的，吧", ["好", "的", "吧"]),
    ("用ZARA的T恤", ["用", "zara", "的", "恤"]),
    ("ＺＡＲＡ ３．１４", ["zara", "3.14"]),
    ("ｶﾞｷﾞｺ", ["ガギ", "ギコ"]),
    ("ラーメン屋", ["ラー", "ーメ", "メン", "ン屋"]),
    ("한국 사람", ["한국", "사람"]),
    ("The cat and www", ["cat"]),
    ("an İ Σ", ["an", "i", "σ"]),
    ("#围巾[话题]#", ["围巾", "话题"]),
]


@pytest.mark.parametrize(("text", "terms"), ZH)
def test_chinese_terms(text: str, terms: list[str]) -> None:
    assert analyzer("zh")(text) == terms


EN = [
    ("The dogs' owner's O’Neil’s", ["dog", "owner", "o’neil"]),
    ("relational conditional rationally", ["relat", "condit", "ration"]),
    ("possibly analogously apology", ["possibl", "analog", "apolog"]),
    ("is at by us as sky", ["us", "sky"]),
    ("3.5% of U.S. troops", ["3.5", "u.", "troop"]),
]


@pytest.mark.parametrize(("text", "terms"), EN)
def test_english_terms(text: str, terms: list[str]) -> None:
    assert analyzer("en")(text) == terms


def test_thai_text_falls_into_words_without_stop_words() -> None:
    # PyThaiNLP 5.4.0: word_tokenize("ประเทศไทยมีประชากร ๖๖ ล้านคน", engine="newmm"); มี is a stop word of Lucene
    assert analyzer("th")("ประเทศไทยมีประชากร ๖๖ ล้านคน") == ["ประเทศ", "ไทย", "ประชากร", "66", "ล้าน", "คน"]


def test_stop_word_lists_have_lucenes_sizes() -> None:
    assert (len(ENGLISH_STOP_WORDS), len(CJK_STOP_WORDS)) == (33, 35)


def test_an_unknown_language_names_the_choices() -> None:
    with pytest.raises(SettingError, match=r"language 'jp': choose from ar, bg, .*, vi, zh"):
        analyzer("jp")


@given(st.text())
def test_tokens_are_ordered_and_never_overlap(text: str) -> None:
    ends = 0
    for start, end, _ in standard_tokens(text):
        assert ends <= start < end <= len(text)
        ends = end


@pytest.mark.parametrize("language", sorted(ANALYZERS))
@given(text=st.text())
def test_terms_of_any_text_are_not_empty_and_hold_no_blanks(language: str, text: str) -> None:
    assert all(term and not term.isspace() for term in analyzer(language)(text))


@given(st.text())
def test_folding_is_idempotent(text: str) -> None:
    assert lower_case(lower_case(text)) == lower_case(text)
    assert fold_width(fold_width(text)) == fold_width(text)


@given(st.text(alphabet="中文好的，。 aZ"))
def test_bigrams_of_a_text_and_its_parts_between_punctuation_agree(text: str) -> None:
    parts = [term for part in text.replace("。", "，").split("，") for term in analyzer("zh")(part)]
    assert analyzer("zh")(text) == parts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("_" * 100_000, 0),
        ("\u200d" * 100_000, 0),
        ("a" * 255_000, 1_000),
        ("_" * 254 + "a" + "_" * 99_999, 1),
        ("_" * 100_000 + " a", 1),
    ],
)
def test_long_runs_are_cut_as_lucene_cuts_them(text, tokens):
    found = list(standard_tokens(text))
    assert len(found) == tokens
    assert all(end - start <= 255 for start, end, _ in found)
