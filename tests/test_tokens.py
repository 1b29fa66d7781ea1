"""Tokenizers: tables of text and tokens, and what holds for any text."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from functools import cache

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qilin_tasks.text import tokens
from qilin_tasks.text.chinese_words import chinese_words
from qilin_tasks.text.tokens import TOKENIZERS, Codes, clean, encode_chars, normalize, tokenize_chars, tokenize_jieba

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=60)
MIXED_TEXT = st.text(
    st.sampled_from("很好用の가ก้ำשлπΣİéé㎡①㈱ｶﾞ℃…Ａ１aZ09_ .,!?\u200d\ufe0f\u20e3😀\n𠮷々ー\ud842\udfb7"), max_size=60
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("很好用！", ["很", "好", "用"]),
        ("iPhone15很好用,3.5折", ["iphone15", "很", "好", "用", "3", "5", "折"]),
        ("ＡＢＣ１２３ abc123", ["abc123", "abc123"]),
        ("don't snake_case", ["don", "t", "snake", "case"]),
        ("𠮷野家𪚥", ["𠮷", "野", "家", "𪚥"]),
        ("々〇", ["々", "〇"]),
        ("ラーメン ﾗｰﾒﾝ ｶﾞ が", ["ラ", "ー", "メ", "ン", "ラ", "ー", "メ", "ン", "ガ", "が"]),
        ("한국어 a", ["한", "국", "어", "a"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("café CAFÉ", ["café", "café"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Привет, мир", ["привет", "мир"]),
        ("ΟΔΟΣ", ["οδος"]),
        ("25℃ 30㎡ ①", ["25", "c", "30m2", "1"]),
        ("1️⃣第一", ["1", "第", "一"]),
        ("a\u200bb\u00adc", ["abc"]),
        ("😀👨‍👩‍👧🇨🇳❤️", []),
        ("#护肤[话题]#", ["护", "肤", "话", "题"]),
        ("<b>好</b>\x00\x1b[0m", ["b", "好", "b", "0m"]),
        ("\ud842\udfb7", ["𠮷"]),
        ("\ud842好\udfb7", ["好"]),
        ("萬万", ["萬", "万"]),
    ],
)
def test_characters(text: str, expected: list[str]) -> None:
    assert tokenize_chars(text) == [unicodedata.normalize("NFC", token) for token in expected]


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_as_rouge_score_cuts_it(text: str) -> None:
    from rouge_score.tokenize import tokenize

    assert tokenize_chars(text) == tokenize(text, None)


@settings(deadline=None)
@given(ANY_TEXT | MIXED_TEXT)
@example("ｶﾞ")
@example("Σ")
@example("e\u0301")
@example("\u3099か\u3099")
@example("a\u0897b")  # a mark since Unicode 16, which Python's own tables may not know
def test_array_way_equals_the_general_way(text: str) -> None:
    """Plain text is mapped by table, other text by NFKC and Unicode's script classes: one definition."""
    assert tokenize_chars(text) == tokens._tokenize_in_context(text)


@settings(deadline=None)
@given(ANY_TEXT | MIXED_TEXT, ANY_TEXT | MIXED_TEXT)
def test_codes_are_equal_where_tokens_are(one: str, other: str) -> None:
    codes = Codes()
    both = [*tokenize_chars(one), *tokenize_chars(other)]
    encoded = encode_chars(one, codes) + encode_chars(other, codes)
    assert len(encoded) == len(both)
    assert len(set(encoded)) == len(set(both)) == len(set(zip(encoded, both, strict=True)))


@settings(deadline=None)
@given(ANY_TEXT | MIXED_TEXT)
def test_tokens_hold_letters_or_digits_and_no_space(text: str) -> None:
    for tokenizer in TOKENIZERS.values():
        for token in tokenizer(text):
            assert regex.search(r"[\p{L}\p{N}]", token)
            assert not any(character.isspace() for character in token)
            assert token == token.lower()


@settings(deadline=None)
@given(ANY_TEXT)
def test_clean_text_is_valid_and_stays(text: str) -> None:
    once = clean(text)
    once.encode()
    assert clean(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, ""), ("好", "好"), ("a\ud800", "a\ufffd"), ("\ud83d\ude00", "😀"), ("\udc00\ud800b", "\ufffd\ufffdb")],
)
def test_clean(text: str | None, expected: str) -> None:
    assert clean(text) == expected


def test_none_has_no_tokens() -> None:
    assert tokenize_chars(None) == tokenize_jieba(None) == []


def test_a_run_of_marks_is_cut_at_thirty() -> None:
    """100,000 marks of two combining classes take CPython's canonical ordering 21 s."""
    assert len(normalize("a" + "\u0301\u0323" * 50_000)) <= 31


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("好" * 100_000, 100_000),
        ("a" * 100_000, 1),
        ("好a1 " * 25_000, 50_000),
        ("😀" * 100_000, 0),
        ("ก้" * 50_000, 50_000),
        ("<p>" * 33_000, 33_000),
        ("℃" * 100_000, 1 + 99_999),
    ],
)
def test_100_000_characters(text: str, count: int) -> None:
    assert len(tokenize_chars(text)) == count
    kept = len(regex.findall(r"[\p{L}\p{N}]", normalize(text)))
    assert len("".join(tokenize_jieba(text))) == kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # jieba 0.42.1: list(jieba.cut("我来到北京清华大学", HMM=True))
        ("我来到北京清华大学", ["我", "来到", "北京", "清华大学"]),
        # jieba 0.42.1, HMM on finds 杭研, which is not in the dictionary
        ("他来到了网易杭研大厦", ["他", "来到", "了", "网易", "杭研", "大厦"]),
        ("iPhone15很好用，打3.5折！", ["iphone15", "很", "好", "用", "打", "3.5", "折"]),
        ("，。！—…😀", []),
    ],
)
def test_jieba(text: str, expected: list[str]) -> None:
    assert tokenize_jieba(text) == expected


def test_jieba_words_of_other_code_change_nothing() -> None:
    import jieba

    before = tokenize_jieba("我来到北京清华大学")
    jieba.add_word("来到北京", freq=10**9)
    try:
        assert tokenize_jieba("我来到北京清华大学") == before
    finally:
        jieba.del_word("来到北京")


def test_jieba_loads_silently() -> None:
    """Its own loading logs to stderr, and pkg_resources warns."""
    script = "from qilin_tasks.text.tokens import tokenize_jieba; print(len(tokenize_jieba('北京清华大学')))"
    done = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, "jieba" in done.stderr.lower(), "prefix dict" in done.stderr) == ("2\n", False, False)


@cache
def untouched_jieba():
    """jieba as it comes: a word that other code added changes its module-wide instance's total for good."""
    import jieba

    jieba.setLogLevel(60)
    return jieba.Tokenizer()


@given(st.text(st.sampled_from("的一是在我爱北京天安门夨囧abc12.3%+-_# \n。，ａアé"), max_size=40))
def test_words_are_those_that_jieba_cuts(text):
    assert list(chinese_words(text)) == list(untouched_jieba().cut(text, HMM=True))


def test_a_long_run_without_a_dictionary_word_is_cut():
    # jieba's own Viterbi copies the path at every character: a thousandth of this length already took seconds.
    assert "".join(tokenize_jieba("夨" * 200_000)) == "夨" * 200_000
