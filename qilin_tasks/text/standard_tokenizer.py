"""Lucene's StandardTokenizer: the words of UAX #29, single ideographs, emoji, South East Asian runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

MAX_TOKEN_LENGTH = 255
"""Longest token in UTF-16 units; Lucene cuts longer ones there and goes on behind the cut."""

# How far the grammar looks while a longer token is cut up: seeing all that is left each time would be quadratic. What
# ends within the margin before the window's end is looked at again from its start.
_WINDOW, _MARGIN = 4_096, 64
# Classes of which a word has at least one.
_WORD_CLASSES = "KNLGW"

CLASSES: dict[str, str] = {
    "M": r"[\U0001F3FB-\U0001F3FF]",
    "Z": r"\u200D",
    "V": r"\uFE0F",
    "v": r"\uFE0E",
    "k": r"\u20E3",
    "s": r"[\p{LB=Complex_Context}&&[\p{WB=Extend}\p{WB=Format}]]",
    "S": r"\p{LB=Complex_Context}",
    "x": r"[\p{WB=Extend}\p{WB=Format}]",
    "G": r"[\p{Script=Hangul}&&\p{WB=ALetter}]",
    "W": r"\p{WB=Hebrew_Letter}",
    "L": r"\p{WB=ALetter}",
    "N": r"[\p{WB=Numeric}\uFF10-\uFF19]",
    "K": r"\p{WB=Katakana}",
    "U": r"\p{WB=ExtendNumLet}",
    ":": r"\p{WB=MidLetter}",
    ",": r"\p{WB=MidNum}",
    ".": r"\p{WB=MidNumLet}",
    "'": r"\p{WB=Single_Quote}",
    '"': r"\p{WB=Double_Quote}",
    "R": r"\p{WB=Regional_Indicator}",
    "H": r"[\p{Script=Han}\p{Script=Hiragana}]",
    "B": r"\p{Emoji_Modifier_Base}",
    "#": r"[#*]",
    "E": r"[\p{Extended_Pictographic}\p{Emoji}]",
}
"""Classes of characters by letter, first match wins, everything else a blank: the character sets of
StandardTokenizerImpl.jflex (Lucene 10) with the Unicode version of the `regex` package."""


class _ClassOf(dict[int, str]):
    """`str.translate` table from code points to class letters, filled on first sight."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = next((letter for letter, pattern in _compiled() if pattern.match(character)), " ")
        return self[code]


@cache
def _compiled() -> list[tuple[str, Any]]:
    import regex

    return [(letter, regex.compile(pattern, flags=regex.V1)) for letter, pattern in CLASSES.items()]


_CLASS_OF = _ClassOf()


def class_letters(text: str) -> str:
    """One class letter of CLASSES (or a blank) for each character of `text`."""
    return text.translate(_CLASS_OF)


def _grammar() -> re.Pattern[str]:
    # Python takes the first alternative, JFlex the longest: a letter or digit that is an emoji too (ℹ, 1️⃣) is
    # never longer as an emoji, and the look-aheads refuse a Katakana or Hangul word that goes on as another.
    extend, unselected = "[xZVvks]*", "[xZks]*"
    katakana, number, letter, join = f"K{extend}", f"N{extend}", f"[LGW]{extend}", f"U{extend}"
    part = (
        f"(?:{katakana}(?:(?:{join})*{katakana})*"
        f"|(?:{number}(?:(?:(?:{join})*|[,.']{extend}){number})*"
        f"|{letter}(?:(?:(?:{join})*|[:.']{extend}|(?<=W)\"(?=W)){letter})*(?:(?<=W)')?)+)"
    )
    word = f"(?:{join})*{part}(?:(?:{join})+{part})*(?:{join})*"
    emoji_one = f"Z*(?:(?:B{unselected})?M{unselected}|[EB]{unselected}V?)"
    emoji = f"{emoji_one}(?:(?:Z|(?<=Z)){emoji_one})*"
    return re.compile(
        # Most words of most texts, found without the rest of the grammar.
        "L+(?![^ ])|(?P<run>HH+(?![xZVvks]))"
        # Underscores and joiners that lead to nothing, at once: each of them would look at all the others.
        f"|(?P<nothing>(?:{join})*U(?!{extend}[{_WORD_CLASSES}U])|Z+(?![ZBEM]))"
        f"|(?P<cjk>(?:{katakana})+(?![KUxZVvks])|(?:G{extend})+(?![GLWNUxZVvks]|[:.']{extend}[LGW])|H{extend})"
        f"|{word}|(?:[Ss]{extend})+|{emoji}|#{unselected}V?k{unselected}|(?:R{extend}){{2}}"
    )


_GRAMMAR = _grammar()


def _cut(text: str, start: int, end: int) -> int:
    """Where Lucene cuts a token that is longer than its buffer, counted in UTF-16 units."""
    units = 0
    for position in range(start, end):
        units += 2 if ord(text[position]) > 0xFFFF else 1
        if units > MAX_TOKEN_LENGTH:
            return position
    return end


# South East Asian marks between underscores: tokens of their own where no word holds them.
_MARKS = re.compile("s[xZVvks]*")


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    while start < end:
        cut = _cut(text, start, end)
        yield start, cut, False
        start = cut
        while start < end and class_letters(text[start]) not in "sS":
            start += 1


def _single(start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    return ((position, position + 1, True) for position in range(start, end))


def standard_tokens(text: str, *, single: bool = True) -> Iterator[tuple[int, int, bool]]:
    """(start, end, CJK?) of each token in order; text without words gives none.

    CJK are the four types that Lucene's CJKBigramFilter joins: ideographs, Hiragana, Katakana, Hangul. With
    `single=False` ideographs in a row come as one range, as quick callers that join them anyway like it.
    """
    classes = class_letters(text)
    # `until`: the end of the longest token that is being cut up; `last_letter`: where it stops being more than joiners.
    position = until = last_letter = 0
    while position < len(text):
        limit = position + _WINDOW if until - position > _WINDOW else len(text)
        for match in _GRAMMAR.finditer(classes, position, limit):
            start, end = match.span()
            is_cjk = match.lastgroup in ("run", "cjk")
            at_limit = limit < len(text) and end > limit - _MARGIN
            if match.lastgroup == "nothing" and not (at_limit and start < last_letter):
                for marks in _MARKS.finditer(classes, start, end):
                    yield from _pieces(text, *marks.span())
                continue
            if match.lastgroup == "run":
                yield from _single(start, end) if single else [(start, end, True)]
                continue
            if end - start > MAX_TOKEN_LENGTH // 2 and (cut := _cut(text, start, end)) < end:
                yield start, cut, is_cjk
                if end > until:
                    until, last_letter = end, max(classes.rfind(letter, start, end) for letter in _WORD_CLASSES)
                position = cut
                break
            if at_limit:
                position = start
                break
            yield start, end, is_cjk
        else:
            if limit == len(text):
                return
            position = limit - _MARGIN
