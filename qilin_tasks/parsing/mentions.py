"""Whether a text speaks of a mark that stands in it: in backticks, in quotes, within a sentence."""

from __future__ import annotations

import re

# How far a mark's line is looked at, so that no line makes the search long.
_REACH = 300
_SAME = ("`", '"', "*", "'")
_PAIRS = ("“”", "‘’", "「」", "『』", "《》", "〈〉", "«»", "‹›", "()", "（）", "【】", "[]")
_SPANS = ("``", '""', "“”", "「」", "『』", "《》", "«»")
_QUOTE = re.compile("[`\"'*“「『《«]")
_QUOTED = {pair[0]: pair[1] for pair in _PAIRS}


def is_mentioned(text: str, start: int, end: int, *, since: int, begun: bool) -> bool:
    """Whether `text[start:end]` is text. The stretch that it belongs to began at `since`; `begun`: behind reasoning.

    A mark between quotes or in a span of backticks or quotes is; behind finished reasoning one with a sentence on both
    sides is as well.
    """
    last, first = text[start - 1 : start], text[end : end + 1]
    if start == since or not first:
        return False
    if _QUOTED.get(last) == first:
        return True
    low = max(since, start - _REACH)
    if _QUOTE.search(text, low, start) and _is_quoted(text[low:start], _line(text, end), begun=begun):
        return True
    return begun and last == first == " " and bool(_before(text[low:start]).strip() and _line(text, end).strip())


def _is_quoted(before: str, behind: str, *, begun: bool) -> bool:
    before, behind = _before(before).replace("```", ""), behind.replace("```", "")
    if before and behind and before[-1] == behind[0] and before[-1] in _SAME:
        run = before[len(before.rstrip(before[-1])) :]
        if before.count(run) % 2:
            return True
    return any(_spans(pair, before, behind, begun) for pair in _SPANS)


def _before(text: str) -> str:
    """What stands on the last line."""
    return text[text.rfind("\n") + 1 :]


def _line(text: str, start: int) -> str:
    end = text.find("\n", start, start + _REACH)
    return text[start : end if end >= 0 else start + _REACH]


def _spans(pair: str, before: str, behind: str, begun: bool) -> bool:
    """Whether a pair that opened on the same line closes behind; what begins the whole text only wraps it."""
    opening, closing = pair[0], pair[1]
    opened = before.rfind(opening)
    if opened < 0 or closing not in behind:
        return False
    inside = before.count(opening) % 2 == 1 if opening == closing else before.rfind(closing) < opened
    return inside and (begun or bool(before[:opened].strip()))
