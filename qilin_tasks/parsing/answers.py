"""What a model wrote -> the answer to score: without its reasoning, and empty where the reasoning never ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qilin_tasks.parsing.marks import END_OF_TURN, FAMILIES, Mark, marks
from qilin_tasks.parsing.mentions import is_mentioned
from qilin_tasks.text.tokens import clean

_ANY = "any"
# Hunyuan's and ERNIE's templates, and the prompts of R1-style training, wrap what follows the reasoning.
_WRAPPED = re.compile(r"\s*<(?P<tag>answer|response)>(?P<answer>.*)\Z", re.DOTALL | re.IGNORECASE)
_CUT_MARK = re.compile(r"<\|[^<>|\s]{0,40}\|?\Z|\A<[a-z]{0,8}\Z")

#: What stands for an answer that a server's content filter refused, where the user wants such prompts counted.
REFUSED_RATE = "refused_rate"
REFUSED = "⟦refused by the server's content filter⟧"


@dataclass(frozen=True)
class Answer:
    """The answer without reasoning and outer white space; "" and `unfinished` where the reasoning never ended."""

    text: str
    unfinished: bool
    unknown_marks: int = 0
    """What looks like a mark of a notation that `marks.FAMILIES` doesn't hold, and stayed in the text."""


def strip_reasoning(text: str | None, *, opened: bool = False) -> Answer:
    """Remove closed reasoning blocks; a block that is never closed makes the answer empty. Never raises.

    `opened`: the prompt ended inside a block (its chat template wrote `<think>`). A closing mark without an opening one
    ends such a block too where anything follows it. A block ends at the closing mark of its own name; opening marks
    inside it are part of the reasoning. A mark that the answer speaks of is text.

    >>> strip_reasoning("<think>八分钟？</think>煮八分钟。").text
    '煮八分钟。'
    >>> strip_reasoning("<think>八分钟？也许").unfinished
    True
    """
    if text == REFUSED:
        return Answer(text="", unfinished=False)
    source = clean(text)
    reader = _Reader(source, block=_ANY if opened else None)
    for mark in marks(source):
        reader.read(mark)
    return reader.answer()


class _Reader:
    """Goes through the marks of a text and keeps what is outside of reasoning, in parts that a stray mark divides."""

    def __init__(self, source: str, *, block: str | None) -> None:
        self.source = source
        self.block = block
        self.reasoned = block is not None
        self.parts: list[list[str]] = [[]]
        self.end = 0
        self.unknown = 0
        self.unknown_open: set[str] = set()
        self.doubtful = False
        self.begun = False
        self.seen = 0
        self.fences = 0

    def read(self, mark: Mark) -> None:
        """Take one mark, which stands behind those before."""
        if self.block is not None:
            self._read_reasoning(mark)
        elif self._is_text(mark):
            self.unknown += mark.kind == "unknown" and not self._mentions(mark)
        else:
            self._keep(mark.start)
            self._read_answer(mark)
            self.end = self.seen = mark.end

    def answer(self) -> Answer:
        """What is left when all marks are read."""
        if self.block is not None:
            return Answer(text="", unfinished=True, unknown_marks=self.unknown)
        self._keep(len(self.source))
        texts = (_without_end("".join(part)) for part in reversed(self.parts))
        text = next(filter(None, texts), "")
        if self.reasoned:
            text = _unwrapped(_CUT_MARK.sub("", text).rstrip())
        return Answer(text=text, unfinished=False, unknown_marks=self.unknown)

    def _read_reasoning(self, mark: Mark) -> None:
        if mark.kind in ("closes", "answers") and self.block in (mark.block, _ANY):
            # Reasoning may speak of the mark that ends it; then the next one divides what follows once more.
            self.doubtful = is_mentioned(self.source, mark.start, mark.end, since=self.end, begun=False)
            self.block = None
            self.end = self.seen = mark.end
            self.fences = 0
            self.begun = any(self.parts[-1])
            if mark.kind == "answers":
                self.parts = [[]]

    def _read_answer(self, mark: Mark) -> None:
        if mark.kind == "opens":
            self.reasoned = True
            self.block = None if self.source[mark.end - 2 : mark.end] == "/>" else mark.block
        elif mark.kind == "answers":
            self.reasoned = True
            self.parts = [[]]
        elif mark.kind == "closes" and FAMILIES[mark.family].stray == "divides":
            self.reasoned = True
            if self.parts[-1]:
                self.parts.append([])

    def _is_text(self, mark: Mark) -> bool:
        if mark.kind == "unknown":
            self.unknown_open.add(mark.family)
            return True
        if mark.kind == "closes":
            if FAMILIES[mark.family].stray == "text":
                return True
            if mark.family in self.unknown_open:
                self.unknown_open.discard(mark.family)
                return True
        return self._mentions(mark)

    def _mentions(self, mark: Mark) -> bool:
        between = self.source[self.seen : mark.start]
        self.fences += between.count("```")
        self.seen = mark.start
        self.begun = self.begun or bool(between.strip(" \t\r\n`"))
        begun = self.reasoned and not self.doubtful
        if self.fences % 2 and self.begun:
            return True
        return is_mentioned(self.source, mark.start, mark.end, since=self.end, begun=begun)

    def _keep(self, end: int) -> None:
        piece = self.source[self.end : end]
        if piece.strip() or self.parts[-1]:
            self.parts[-1].append(piece)


def _without_end(text: str) -> str:
    """Without outer white space and the marks that end a turn."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        if not text.endswith(END_OF_TURN, 0, end):
            return text[:end].strip()
        end -= next(len(mark) for mark in END_OF_TURN if text.endswith(mark, 0, end))


def _unwrapped(text: str) -> str:
    wrapped = _WRAPPED.match(text)
    if wrapped is None:
        return text
    answer = wrapped["answer"].rstrip()
    closing = f"</{wrapped['tag']}>"
    return answer[: -len(closing)].strip() if answer.lower().endswith(closing.lower()) else answer.strip()
