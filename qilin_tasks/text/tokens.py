"""Tokenizers for scoring text in any script: one home, so that a metric's numbers name the tokenizer they come from.

Common rules. Compatibility forms are folded (NFKC: `ＡＢＣ１２３` is `abc123`, `ｶﾞ` is `ガ`, `①` is `1`), case is
lowered, invisible characters (zero-width, variation selectors, keycap marks) vanish, punctuation, symbols and emoji
are no tokens. Traditional and simplified characters stay different. On ASCII text `tokenize_chars` gives exactly
what rouge-score's own tokenizer gives without its stemmer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import regex

from qilin_tasks.text.chinese_words import chinese_words

Tokenizer = Callable[[str], list[str]]

# Scripts written without spaces, and Hangul (whose space-separated words carry particles): one token a character.
# U+30FC, the prolonged sound mark of both kana, is of script Common.
_SINGLE = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u30fc]"
    r"&&[\p{L}\p{N}]]"
)
# A base character keeps its marks: Thai vowels and tones, Indic vowel signs, accents without a composed form.
_TOKEN = regex.compile(
    rf"{_SINGLE}\p{{M}}*|[[\p{{L}}\p{{N}}]--{_SINGLE}][[\p{{L}}\p{{N}}\p{{M}}]--{_SINGLE}]*", regex.V1
)
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Me}]+", regex.V1)
# By regex's tables as the pattern of tokens is, not by unicodedata's: the two follow other versions of Unicode.
_WORD_CHARACTER = regex.compile(r"[\p{L}\p{N}]")
_JOINS_TOKENS = regex.compile(r"[\p{L}\p{N}\p{M}]")
_READABLE = regex.compile(r"[\p{L}\p{N}\p{P}\p{S}]")
# Canonical ordering in CPython is quadratic in the length of a run of marks: 100,000 of them took 21 s. Unicode's
# stream-safe format (UAX 15) keeps at most 30.
_MARK_RUN = regex.compile(r"(\p{M}{30})\p{M}+", regex.V1)

# The characters of most texts, whose token doesn't depend on their neighbours: CJK, kana and Hangul syllables; and
# lower-case Latin, Vietnamese and Cyrillic letters with ASCII digits.
_PLAIN_SINGLE = regex.compile(r"[[\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uac00-\ud7a3]&&[\p{L}\p{N}]]", regex.V1)
_PLAIN_WORD_RANGES = "0-9a-z\u00df-\u00f6\u00f8-\u017f\u0430-\u045f\u1ea0-\u1ef9"
_PLAIN_WORD = re.compile(f"[{_PLAIN_WORD_RANGES}]+")
_PLAIN_TOKEN = re.compile(f"[{_PLAIN_WORD_RANGES}]+|[^ ]")

# Codes are private-use characters (planes 15 and 16), which are never tokens themselves.
_FIRST_CODE, MAX_CODES = 0xF0000, 0x20000


def clean(text: str | None) -> str:
    """The text as valid Unicode: None is empty, surrogate pairs are joined, lone ones become U+FFFD. Never raises."""
    if text is None:
        return ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def is_blank(text: str) -> bool:
    """Whether there is nothing to read: no letter, digit, punctuation or symbol."""
    return _READABLE.search(text) is None


def normalize(text: str | None) -> str:
    """`clean`, then without invisible characters, NFKC, lower case: the form in which texts are compared."""
    visible = _INVISIBLE.sub("", clean(text))
    return unicodedata.normalize("NFKC", _MARK_RUN.sub(r"\1", visible)).lower()


class _Characters:
    """Each code point's normal form as one code point, filled as they are met: a text is mapped in a few array steps.

    That is many times faster than normalising it and matching a pattern of scripts. Separators map to a space. Where a
    character's token depends on its neighbours, or its form is longer, the text takes the general way.
    """

    unknown, in_context, invisible = 0x110000, 0x110001, 1

    def __init__(self) -> None:
        self.forms = np.full(0x110000, self.unknown, dtype="<u4")

    def plain(self, text: str) -> str | None:
        """The text of plain characters and spaces; None where it must be read in context."""
        if not text:
            return ""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        forms = self.forms[points]
        if forms.max() >= self.unknown:
            for point in set(points[forms == self.unknown].tolist()):
                self.forms[point] = self._form(chr(point))
            forms = self.forms[points]
            if forms.max() >= self.unknown:
                return None
        plain: str = forms.tobytes().decode("utf-32-le")
        return plain.replace(chr(self.invisible), "")

    def _form(self, character: str) -> int:
        if unicodedata.category(character) == "Cs":
            return self.in_context
        if _INVISIBLE.match(character):
            return self.invisible
        form = normalize(character)
        if len(form) == 1 and (_PLAIN_SINGLE.match(form) or _PLAIN_WORD.match(form)):
            return ord(form)
        return self.in_context if _JOINS_TOKENS.search(form) else ord(" ")


@lru_cache(maxsize=1)
def _characters() -> _Characters:
    return _Characters()


def tokenize_chars(text: str | None) -> list[str]:
    """Characters for CJK, kana, Hangul, Thai, Lao, Khmer and Burmese (each with its marks), words for other scripts.

    Words are runs of letters, digits and marks, lower-cased, so `iPhone15` is one token and `3.5` two. Never raises.
    """
    plain = _characters().plain(text or "")
    return _tokenize_in_context(text) if plain is None else _PLAIN_TOKEN.findall(plain)


def _tokenize_in_context(text: str | None) -> list[str]:
    return list(_TOKEN.findall(normalize(text)))


class Codes(dict[str, str]):
    """A distinct private-use character for each distinct token, in order of appearance; at most `MAX_CODES`.

    Sequences of tokens become strings that are equal where the tokens are, for tools that compare strings fast.
    """

    def __missing__(self, token: str) -> str:
        self[token] = code = chr(_FIRST_CODE + len(self))
        return code


def encode_chars(text: str | None, codes: Codes) -> str:
    """`tokenize_chars(text)` with each token as one character: plain CJK as itself, all others by `codes`."""
    plain = _characters().plain(text or "")
    if plain is None:
        tokens = _tokenize_in_context(text)
        return "".join(token if _PLAIN_SINGLE.fullmatch(token) else codes[token] for token in tokens)
    return _PLAIN_WORD.sub(lambda word: codes[word[0]], plain).replace(" ", "")


def tokenize_jieba(text: str | None) -> list[str]:
    """Chinese words by jieba (default dictionary, HMM on), lower-cased; tokens without a letter or digit are dropped.

    jieba cuts only Chinese, ASCII letters and digits into words; other scripts come out a character at a time.
    """
    tokens = list(chinese_words(normalize(text)))
    dropped = {token for token in set(tokens) if _WORD_CHARACTER.search(token) is None}
    return [token for token in tokens if token not in dropped] if dropped else tokens


TOKENIZERS: dict[str, Tokenizer] = {"char": tokenize_chars, "jieba": tokenize_jieba}
