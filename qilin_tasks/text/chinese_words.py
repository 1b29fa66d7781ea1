"""Chinese words by jieba's dictionary and models, in time linear in the text.

jieba 0.42.1's own Viterbi copies the path for every character: 200,000 characters without a dictionary word did not
end. The words are the same as its `cut(text, HMM=True)` gives.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf, log
from typing import NamedTuple

_BLOCK = re.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&\._%\-]+")
_UNKNOWN = re.compile(r"([\u4E00-\u9FD5]+)|([a-zA-Z0-9]+(?:\.\d+)?%?)|(?:(?![\u4E00-\u9FD5a-zA-Z0-9]).)+", re.DOTALL)
# jieba's logarithm of a probability of 0.
_LEAST = -3.14e100

Emissions = tuple[float, float, float, float]


class _Model(NamedTuple):
    """The dictionary (a word's log-probability, minus infinity for what is only the prefix of one), that of a character
    without an entry, and the model of characters at a word's Begin, Middle, End, or as a Single word.
    """

    words: Mapping[str, float]
    unknown: float
    start: Emissions
    transitions: Mapping[str, Mapping[str, float]]
    emissions: Mapping[str, Mapping[str, float]]


@lru_cache(maxsize=1)
def _model() -> _Model:
    """Read straight from the package's files.

    jieba's usual way of loading logs to stderr and trusts a cache file in the shared temporary folder, and its
    module-wide instance takes words that other code adds: both could change scores.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
        from jieba import finalseg

    cutter = jieba.Tokenizer()
    frequencies, total = cutter.gen_pfdict(cutter.get_dict_file())
    start = tuple(finalseg.start_P[state] for state in "BMES")
    every = log(total)
    words = {word: log(count) - every if count else -inf for word, count in frequencies.items()}
    return _Model(words, 0.0 - every, start, finalseg.trans_P, finalseg.emit_P)


class _Emissions(dict[str, Emissions]):
    """The four log-probabilities of a character, filled as they are met."""

    def __missing__(self, character: str) -> Emissions:
        of = _model().emissions
        found = tuple(of[state].get(character, _LEAST) for state in "BMES")
        self[character] = values = (found[0], found[1], found[2], found[3])
        return values


_EMISSIONS = _Emissions()


def chinese_words(text: str) -> Iterator[str]:
    """Words in order: of Chinese, ASCII letters and digits as jieba cuts them, every other character alone."""
    position = 0
    for block in _BLOCK.finditer(text):
        yield from text[position : block.start()]
        yield from _of_block(block.group())
        position = block.end()
    yield from text[position:]


def _of_block(block: str) -> Iterator[str]:
    ends = _best_ends(block)
    words = _model().words
    begin = unknown = 0
    while begin <= len(block):
        end = ends[begin] if begin < len(block) else begin + 2
        if end - begin == 1:
            begin = end
            continue
        run = block[unknown:begin]
        if len(run) > 1 and words.get(run, -inf) == -inf:
            yield from _of_unknown(run)
        else:
            yield from run
        if begin < len(block):
            yield block[begin:end]
        begin = unknown = end


def _best_ends(block: str) -> list[int]:
    """The end of the word that starts at each position on the most probable way from there to the block's end."""
    words, unknown = _model().words, _model().unknown
    size = len(block)
    route, ends = [0.0] * (size + 1), [0] * size
    for begin in range(size - 1, -1, -1):
        best, best_end = 0.0, 0
        end = begin + 1
        # A word of the dictionary has all its prefixes in it.
        while (weight := words.get(block[begin:end])) is not None:
            if weight > -inf:
                value = weight + route[end]
                # Of equal ways the longer word.
                if not best_end or value >= best:
                    best, best_end = value, end
            if end == size:
                break
            end += 1
        if not best_end:
            best, best_end = unknown + route[begin + 1], begin + 1
        route[begin], ends[begin] = best, best_end
    return ends


def _of_unknown(run: str) -> Iterator[str]:
    """Words of a run of characters that the dictionary does not join."""
    for piece in _UNKNOWN.finditer(run):
        if piece.group(1):
            yield from _by_characters(piece.group())
        else:
            yield piece.group()


def _by_characters(run: str) -> Iterator[str]:
    """The hidden Markov model's words of a run of ideographs, by Viterbi with one step back kept for each state."""
    trans = _model().transitions
    e_b, s_b = trans["E"].get("B", _LEAST), trans["S"].get("B", _LEAST)
    m_m, b_m = trans["M"].get("M", _LEAST), trans["B"].get("M", _LEAST)
    s_s, e_s = trans["S"].get("S", _LEAST), trans["E"].get("S", _LEAST)
    b_e, m_e = trans["B"].get("E", _LEAST), trans["M"].get("E", _LEAST)
    emissions = _EMISSIONS
    b, m, e, s = (start + emitted for start, emitted in zip(_model().start, emissions[run[0]], strict=True))
    # Bits of a step: B from S, M from M, E from M, S from S; of equal values jieba takes the letter that sorts last.
    steps = bytearray(len(run))
    for place in range(1, len(run)):
        in_b, in_m, in_e, in_s = emissions[run[place]]
        from_e, from_s = e + e_b + in_b, s + s_b + in_b
        from_m, from_b = m + m_m + in_m, b + b_m + in_m
        to_e_m, to_e_b = m + m_e + in_e, b + b_e + in_e
        to_s_s, to_s_e = s + s_s + in_s, e + e_s + in_s
        step = 0
        if from_s >= from_e:
            b, step = from_s, 1
        else:
            b = from_e
        if from_m >= from_b:
            m, step = from_m, step | 2
        else:
            m = from_b
        if to_e_m >= to_e_b:
            e, step = to_e_m, step | 4
        else:
            e = to_e_b
        if to_s_s >= to_s_e:
            s, step = to_s_s, step | 8
        else:
            s = to_s_e
        steps[place] = step
    yield from _spans(run, steps, "S" if s >= e else "E")


def _spans(run: str, steps: bytearray, state: str) -> Iterator[str]:
    states = [state]
    for step in reversed(steps[1:]):
        if state == "B":
            state = "S" if step & 1 else "E"
        elif state == "M":
            state = "M" if step & 2 else "B"
        elif state == "E":
            state = "M" if step & 4 else "B"
        else:
            state = "S" if step & 8 else "E"
        states.append(state)
    begin = done = 0
    for place, current in enumerate(reversed(states)):
        if current == "B":
            begin = place
        elif current in "ES":
            yield run[begin if current == "E" else place : place + 1]
            done = place + 1
    if done < len(run):
        yield run[done:]
