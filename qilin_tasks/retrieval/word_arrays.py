"""The words and emoji of many texts at once: UAX #29's joins as array operations.

What is rare and intricate (South East Asian and Hebrew text, keycaps of # and *, odd runs of joiners and
selectors) is reported instead of analysed, so that the caller takes those texts through the plain analyzer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.retrieval.char_tables import class_set

_EXTEND = class_set("xZVvk")
_WORDISH = class_set("LGNKU:,.'EBMRxZVvk")
_LETTER, _NUMBER, _JOIN = class_set("LG"), class_set("N"), class_set("U")
_KATAKANA, _HANGUL, _IDEOGRAPH = class_set("K"), class_set("G"), class_set("H")
_MID_LETTER, _MID_NUMBER = class_set(":.'"), class_set(",.'")
_EMOJI, _FLAG = class_set("EBM"), class_set("R")
_FOREIGN = class_set("SsWv")
_ODD_BEFORE_EXTEND = class_set("HKGR")
_SOLID = class_set("LGNK")
_LETTERLIKE = _LETTER | _NUMBER
_TOKEN = _SOLID | _EMOJI | _FLAG
_LONGEST = 127


@dataclass(frozen=True)
class Words:
    """Ranges of code points (ends exclude nothing that belongs to the token), and positions that need care."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    is_cjk: NDArray[np.bool_]
    odd: NDArray[np.int64]


def find_words(classes: NDArray[np.uint8]) -> Words:
    """Tokens other than single ideographs in a text of class bytes; `odd` are positions in texts to take singly."""
    at = np.flatnonzero(_WORDISH[classes])
    kinds = classes[at]
    extends = _EXTEND[kinds]
    odd = [np.flatnonzero(_FOREIGN[classes])]
    kept = np.flatnonzero(~extends)
    if not len(kept):
        # Nothing but marks, which may be part of a token as a keycap's (#️⃣) or behind an ideograph.
        behind = _ODD_BEFORE_EXTEND[classes[np.maximum(at - 1, 0)]] & (at > 0)
        none = np.zeros(0, dtype=np.int64)
        return Words(none, none, np.zeros(0, dtype=np.bool_), np.append(odd[0], at[(kinds == ord("k")) | behind]))
    ends_behind = np.zeros(len(kept), dtype=np.int64)
    if extends.any():
        ends_behind, strange = _extenders(classes, at, kinds, kept, extends)
        odd.append(strange)
    place, kind = at[kept], kinds[kept]
    joined = _joins(classes, place, kind, touching=np.diff(place) == np.diff(kept))
    first = np.flatnonzero(np.concatenate([[True], ~joined]))
    last = np.append(first[1:], len(kept)) - 1
    starts = place[first]
    lengths = place[last] + 1 + ends_behind[last] - starts
    solid = np.maximum.reduceat(_SOLID[kind], first)
    emoji = _EMOJI[kind[first]] | (_FLAG[kind[first]] & (last > first))
    is_cjk = np.minimum.reduceat(_KATAKANA[kind], first) | np.minimum.reduceat(_HANGUL[kind], first)
    is_token = solid | emoji
    odd.append(starts[is_token & (lengths > _LONGEST)])
    return Words(starts[is_token], lengths[is_token], is_cjk[is_token], np.concatenate(odd))


def _extenders(
    classes: NDArray[np.uint8],
    at: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    kept: NDArray[np.int64],
    extends: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many marks, joiners and selectors belong to each kept character (WB4), and where they are odd."""
    marks = np.flatnonzero(extends)
    places, kind = at[marks], kinds[marks]
    before = classes[np.maximum(places - 1, 0)]
    before[places == 0] = ord(" ")
    after = classes[np.minimum(places + 1, len(classes) - 1)]
    joiner = kind == ord("Z")
    odd = _ODD_BEFORE_EXTEND[before] | (joiner & (before == ord("Z")))
    owner = np.searchsorted(kept, marks) - 1
    owned = owner >= 0
    host = kept[np.maximum(owner, 0)]
    owned &= places - at[host] == marks - host
    # What starts an emoji or a keycap here stands in no other token.
    on_token = owned & _TOKEN[kinds[host]]
    odd |= ~on_token & ((joiner & _EMOJI[after]) | (kind == ord("k")))
    on_emoji = owned & _EMOJI[kinds[host]]
    distance = marks - host
    # On an emoji: a selector, a joiner, or a selector and the joiner before the next emoji.
    regular = (distance == 1) & ((kind == ord("V")) | joiner)
    regular |= (distance == 2) & joiner & (before == ord("V")) & _EMOJI[after]
    odd |= on_emoji & ~regular
    odd |= (kind == ord("V")) & (before == ord("M"))
    # A skin tone behind a selector stands alone; behind other marks it may not.
    odd |= (after == ord("M")) & ~joiner & (kind != ord("V"))
    return np.bincount(owner[owned], minlength=len(kept)), places[odd]


def _joins(
    classes: NDArray[np.uint8], place: NDArray[np.int64], kind: NDArray[Any], *, touching: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each kept character belongs to the token of the one before it (one entry fewer than characters)."""
    left, right = kind[:-1], kind[1:]
    joined: NDArray[np.bool_] = _LETTERLIKE[left] & _LETTERLIKE[right]
    joined |= _KATAKANA[left] & _KATAKANA[right]
    joined |= _JOIN[right] & (_SOLID | _JOIN)[left]
    joined |= _JOIN[left] & _SOLID[right]
    # Emoji: a skin tone on its base, or a zero-width joiner right before.
    direct = np.diff(place) == 1
    joined |= (left == ord("B")) & (right == ord("M")) & direct
    joined |= _EMOJI[left] & _EMOJI[right] & (classes[place[1:] - 1] == ord("Z"))
    joined &= touching
    flags = _FLAG[right] & _FLAG[left] & touching
    if flags.any():
        joined |= _pairs(flags)
    middle = np.flatnonzero(touching[:-1] & touching[1:] & (_MID_LETTER | _MID_NUMBER)[kind[1:-1]])
    before, mark, after = kind[middle], kind[middle + 1], kind[middle + 2]
    between = (_LETTER[before] & _MID_LETTER[mark] & _LETTER[after]) | (
        _NUMBER[before] & _MID_NUMBER[mark] & _NUMBER[after]
    )
    joined[middle[between]] = True
    joined[middle[between] + 1] = True
    return joined


def _pairs(links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each run of links the first, third, … : regional indicators make flags two by two."""
    index = np.arange(len(links))
    run_start = np.maximum.accumulate(np.where(links, -1, index))
    pairs: NDArray[np.bool_] = links & ((index - run_start) % 2 == 1)
    return pairs
