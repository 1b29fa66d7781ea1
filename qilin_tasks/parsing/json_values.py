"""JSON as models write it, read in one pass whatever it holds: unquoted keys, single quotes, cut off, nested deeply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\]:,\n]|[^"{}\[\]:,\n]+')
_DEEPEST = 64
_LONGEST_WORD = 40


class Pairs:
    """An object: keys and values as written, a key twice where it is written twice."""

    def __init__(self) -> None:
        self.items: list[tuple[str, Written]] = []


Written = str | list["Written"] | Pairs


@dataclass(frozen=True)
class Found:
    """One outermost value and where it stands in its text."""

    value: Written
    start: int
    end: int


class _Frame:
    """A list or an object that is still open."""

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        self.start = start
        self.value: list[Written] | Pairs = [] if kind == "[" else Pairs()
        self.children: list[Found] = []
        self.key: str | None = None
        # What came last: words, or a value.
        self.words: list[str] = []
        self.inner: Written | None = None
        self.prose = False

    def word(self, written: str, *, quoted: bool) -> None:
        """Take a quoted string, a number or a word; two of them side by side are prose."""
        if self.inner is None:
            self.prose |= bool(self.words) or (not quoted and len(written) > _LONGEST_WORD)
            self.words.append(written)

    def colon(self) -> None:
        """What came last is a key."""
        if self.kind == "{" and self.words and self.key is None:
            self.key = " ".join(self.words)
            self.words.clear()

    def flush(self) -> None:
        """Take what came last as a value."""
        last = " ".join(self.words) if self.words else self.inner
        if last is not None:
            if isinstance(self.value, Pairs):
                if self.key is not None:
                    self.value.items.append((self.key, last))
            else:
                self.value.append(last)
        self.words.clear()
        self.key = self.inner = None


def json_values(text: str) -> list[Found]:
    """The outermost lists and objects, in order; scalars are text as written, without quotes. Never raises.

    What is not closed at the end is taken without its last, perhaps cut, scalar, unless prose stands in it. Deeper than
    64 levels nothing is read.
    """
    stack: list[_Frame] = []
    found: list[Found] = []
    open_kinds = {"[": 0, "{": 0}
    for token in _TOKEN.finditer(text):
        written = token[0]
        if written in "[{":
            if len(stack) >= _DEEPEST:
                found += _left(stack)
                open_kinds = {"[": 0, "{": 0}
            stack.append(_Frame(written, token.start()))
            open_kinds[written] += 1
        elif written in "]}":
            kind = "[" if written == "]" else "{"
            if open_kinds[kind]:
                _close(stack, kind, token.end(), open_kinds, found)
        elif stack:
            _take(stack[-1], written)
    return found + _cut(stack, len(text))


def _take(frame: _Frame, written: str) -> None:
    if written == ",":
        frame.flush()
    elif written == ":":
        frame.colon()
    elif written != "\n" and written.strip():
        quoted = written[0] == '"'
        frame.word(written[1:].removesuffix('"') if quoted else written.strip(" \t'"), quoted=quoted)


def _close(stack: list[_Frame], kind: str, end: int, open_kinds: dict[str, int], found: list[Found]) -> None:
    """Close the innermost frame of a kind; what is open inside it is given up, its finished values are not."""
    while True:
        frame = stack.pop()
        open_kinds[frame.kind] -= 1
        if frame.kind == kind:
            break
        (stack[-1].children if stack else found).extend(frame.children)
    frame.flush()
    whole = Found(frame.value, frame.start, end)
    if stack:
        stack[-1].children.append(whole)
        if not stack[-1].words and stack[-1].inner is None:
            stack[-1].inner = frame.value
    else:
        found.append(whole)


def _left(stack: list[_Frame]) -> Iterator[Found]:
    """The finished values of frames that are given up."""
    for frame in stack:
        yield from frame.children
    stack.clear()


def _cut(stack: list[_Frame], end: int) -> list[Found]:
    """The value of the outermost frame in which no prose stands, closed where the text ends."""
    found: list[Found] = []
    while stack and (stack[0].prose or not stack[0].children):
        found += stack.pop(0).children
    if not stack:
        return found
    value: Written | None = None
    for frame in reversed(stack):
        frame.words.clear()
        if value is not None:
            frame.inner = value
        frame.flush()
        value = frame.value
    return [*found, Found(value or [], stack[0].start, end)]
