"""Marks in generated text that open reasoning, close it, or separate it from the answer: one table for all models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

# A mark that the text ends in the middle of: the model was cut off before it wrote any answer.
_CUT = r"[^<]{0,200}(?:<\|constrain\|>[^<]{0,64})?(?:<\|?[a-z]{0,12}\|?)?\Z"
_ASSISTANT = r"<\|start\|>assistant"
_CHANNEL = rf"(?:{_ASSISTANT}[^<]{{0,64}})?<\|channel\|>\s{{0,4}}"
_MESSAGE = r"(?:[^<]{0,200}(?:<\|constrain\|>[^<]{0,64})?<\|message\|>)?"
_NAME = "think|thinking|antthinking|thoughts?|reasoning|think_fast|think_faster"
_ATTRIBUTES = r"(?:\s{1,16}[^<>=]{1,64}=[^<>]{0,256}|\s{0,16}/)?"
_WORDS = (
    "think|thinking|thoughts?|reason|reasoning|reflection|reflect|scratchpad|monologue|cot|analysis|rationale"
    "|deliberation|planning"
)
_BAR = "(?:think|thinking|thought|reasoning)"


@dataclass(frozen=True)
class Family:
    """Regular expressions of the marks of one notation.

    `answers` stand before the answer and end open reasoning, `ends` stand behind a message. `stray` says what a closing
    mark without an opening one is: it divides (the prompt opened the reasoning), is dropped, or is text.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stray: str = "divides"


# From vLLM 0.32 (vllm/reasoning, vllm/parser) where nothing else is said.
FAMILIES = {
    # <think> (DeepSeek, Qwen3, GLM, Olmo, ERNIE, Nemotron, Step), with a suffix (<think:…>, Hunyuan), Seed's
    # <seed:think>, MiniMax's <mm:think>, K2 Horizon's <ifm|think_fast>; <thinking>, <thought> and <reasoning> come from
    # prompts and other servers (NousResearch/hermes-agent 4286, vectorize-io/hindsight 2195).
    "tag": Family(
        opens=(rf"(?i:<(?:[a-z]{{1,16}}[:|])?(?P<opened>{_NAME})(?::[\w-]{{1,32}})?{_ATTRIBUTES}\s{{0,16}}>)",),
        closes=(rf"(?i:</(?:[a-z]{{1,16}}[:|])?(?P<closed>{_NAME})(?::[\w-]{{1,32}})?\s{{0,16}}>)",),
    ),
    "mistral": Family(opens=(r"\[THINK\]",), closes=(r"\[/THINK\]",)),
    # Kimi-VL and k1.5 write these as text.
    "kimi": Family(opens=("◁(?:think)▷",), closes=("◁/(?:think)▷",)),
    "kimi_k3": Family(
        opens=(r"<\|open\|>\s{0,16}think\s{0,16}<\|sep\|>", rf"<\|open\|>{_CUT}"),
        closes=(r"<\|close\|>\s{0,16}think\s{0,16}<\|sep\|>",),
        answers=(r"<\|open\|>\s{0,16}response\s{0,16}<\|sep\|>",),
        ends=(r"<\|close\|>\s{0,16}(?:response|message)\s{0,16}<\|sep\|>",),
    ),
    "cohere": Family(
        opens=(r"<\|START_THINKING\|>",),
        closes=(r"<\|END_THINKING\|>",),
        answers=(r"<\|START_(?:RESPONSE|TEXT)\|>",),
        ends=(r"<\|END_(?:RESPONSE|TEXT)\|>",),
    ),
    "gemma": Family(
        opens=(r"<\|channel>(?:thought|thinking|analysis)?(?![^\W\d])",),
        closes=(r"<channel\|>",),
        unknown=(r"<\|channel>\w{1,32}", r"\A\s{0,16}thought\n"),
    ),
    "plamo": Family(opens=(r"<\|plamo:begin_think:plamo\|>",), closes=(r"<\|plamo:end_think:plamo\|>",)),
    # Apertus, as llama.cpp's parsers list it.
    "apertus": Family(opens=(r"<\|inner_prefix\|>",), closes=(r"<\|inner_suffix\|>",)),
    "inkling": Family(
        opens=(r"(?:<\|message_model\|>)?<\|content_thinking\|>",),
        closes=(r"<\|end_message\|>",),
        answers=(r"(?:<\|message_model\|>)?<\|content_text\|>",),
        ends=(r"<\|message_model\|>", r"<\|content_model_end_sampling\|>"),
        stray="dropped",
    ),
    "muse": Family(
        opens=(rf"(?:{_ASSISTANT}\s{{0,16}}to=self)<\|message\|>", r"to=self<\|message\|>"),
        closes=(r"<\|eom\|>",),
        answers=(rf"(?:{_ASSISTANT}\s{{0,16}}to=user)<\|message\|>", r"to=user<\|message\|>"),
        ends=(r"<\|eot\|>",),
        stray="dropped",
    ),
    # gpt-oss. A server that skips special tokens leaves the channels' names glued to the text: analysis…assistantfinal…
    # (allenai/olmo-eval 398). Commentary speaks to a tool, or of what comes next.
    "harmony": Family(
        opens=(
            rf"{_CHANNEL}(?:analysis|commentary)(?![a-z_]){_MESSAGE}",
            rf"{_CHANNEL}{_CUT}",
            rf"<\|start\|>(?:[a-z]{{0,9}}\Z|assistant{_CUT})",
            r"\A\s{0,16}(?:assistant)?(?:analysis|commentary)(?=[^\Wa-z_]|(?s:.*?assistant(?:final)))",
        ),
        closes=(r"<\|end\|>", r"<\|return\|>", r"<\|call\|>"),
        answers=(
            rf"{_CHANNEL}final(?![a-z_]){_MESSAGE}",
            rf"{_ASSISTANT}[^<]{{0,64}}<\|message\|>",
            r"\A\s{0,16}(?:assistant)?final(?=[^\Wa-z_])",
        ),
        unknown=(rf"{_CHANNEL}[^<]{{0,64}}<\|message\|>",),
        stray="dropped",
    ),
    "harmony_glued": Family(closes=("assistant(?:final)",), stray="text"),
    "granite": Family(
        opens=(r"\A\s{0,16}Here(?: is|'s) my thought process:",),
        closes=("Here(?: is|'s) my response:",),
        stray="text",
    ),
    # <|begin_of_thought|>…<|begin_of_solution|> (Sky-T1, OpenThinker), <|think|>…<|content|> (Solar Open).
    "bar": Family(
        opens=(rf"<\|(?:begin_of_|start_of_|begin_|start_)?{_BAR}\|>",),
        closes=(rf"<\|(?:/|end_of_|end_){_BAR}\|>",),
        answers=(r"<\|(?:begin_of_)?(?:solution|answer|response|content)\|>",),
        ends=(r"<\|(?:/|end_of_)(?:solution|answer|response|content)\|>",),
    ),
    # What looks like a mark and is none of those above: text, but counted.
    "other": Family(
        unknown=(
            r"<[|｜][/\w][\w:. ▁-]{0,40}[|｜]?>",
            r"</?[^\W\d]\w{0,40}\|>",
            r"◁/?[a-z_]{3,32}▷",
            r"\[/?(?:THINKING|THOUGHTS?|REASONING|ANALYSIS|REFLECTION|SCRATCHPAD|COT)\]",
            f"&lt;/?{_BAR}&gt;",
            rf"(?i:</?(?:[a-z]{{1,16}}[-_:|]){{0,3}}(?:{_WORDS})(?:[-_:|][a-z]{{1,16}}){{0,3}}\s{{0,16}}/?>)",
        )
    ),
}
# What a tokenizer writes behind an answer when special tokens are not skipped; no part of it.
END_OF_TURN = (
    "<|im_end|>", "<|eot_id|>", "<|eot|>", "<|eom|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|return|>",
    "<|END_OF_TURN_TOKEN|>", "<|end_of_msg|>", "<|user|>", "<|observation|>", "<｜end▁of▁sentence｜>",
    "<end_of_turn>", "<turn|>", "</s>", "<eos>", "<|eos|>",
)  # fmt: skip
_ROLES = ("<|im_start|>", "<|assistant|>", "<|system|>", "<|begin_of_text|>", "<|begin|>")

# Only where one of these stands can a mark begin: the many patterns are tried at few places of a text.
_PLACE = re.compile(
    r"<[|｜/a-zA-Z][^<>]{0,400}>|\[/?[A-Z]{3,10}\]|◁/?[a-z_]{3,32}▷|&lt;/?[a-z]{5,9}&gt;"
    r"|to=(?:self|user)(?=<)|assistant(?:final)|Here(?: is|'s) my"
)
# Marks of several parts begin with these; any other is known by its own text.
_HEADS = ("<|channel", "<|start|>", "<|open|>", "<|close|>", "<|message_model|>")


@dataclass(frozen=True)
class Mark:
    """One mark in a text; `block` is what it opens or closes: the family, or the name of the tag."""

    family: str
    kind: str
    block: str
    start: int
    end: int


def marks(text: str) -> Iterator[Mark]:
    """The marks in order of appearance; `kind` is a field of `Family`. END_OF_TURN and roles are none."""
    end = 0
    first = _AT_START.match(text)
    if first:
        yield _mark(first)
        end = first.end()
    while place := _PLACE.search(text, end):
        start, written = place.start(), place[0]
        if written[0] in "<[◁&" and not written.startswith(_HEADS):
            known = _known(written)
        else:
            found = (_BARRED if written.startswith("<") else _OTHERS).match(text, start)
            known = _mark(found) if found else None
        if known is None:
            end = start + 1  # a mark may stand inside of what only looks like one: <a[/THINK]>
            continue
        end = start + known.end - known.start
        if known.kind:
            yield Mark(known.family, known.kind, known.block, start, end)


def _compiled(*, barred: bool | None) -> re.Pattern[str]:
    """The patterns at a text's start (`barred` None), those that begin with `<|`, or the rest."""
    rows = [
        (f"{name}__{kind}", pattern)
        for kind in ("opens", "closes", "answers", "ends")
        for name, family in FAMILIES.items()
        for pattern in getattr(family, kind)
    ]
    rows += [("turn", re.escape(mark)) for mark in (*END_OF_TURN, *_ROLES)]
    rows += [(f"{name}__unknown", pattern) for name, family in FAMILIES.items() for pattern in family.unknown]
    groups: dict[str, list[str]] = {}
    for group, pattern in rows:
        if _is_barred(pattern) is barred:
            groups.setdefault(group, []).append(pattern)
    return re.compile("|".join(f"(?P<{group}>{'|'.join(patterns)})" for group, patterns in groups.items()))


def _is_barred(pattern: str) -> bool | None:
    if pattern.startswith(r"\A"):
        return None
    return pattern.removeprefix("(?:").startswith(("<\\|", "<[|"))


_AT_START = _compiled(barred=None)
_BARRED = _compiled(barred=True)
_OTHERS = _compiled(barred=False)


@lru_cache(maxsize=4096)
def _known(written: str) -> Mark | None:
    """What a mark of one part is, wherever it stands."""
    found = (_BARRED if written[1:2] in "|｜" else _OTHERS).fullmatch(written)
    return _mark(found) if found else None


def _mark(found: re.Match[str]) -> Mark:
    family, _, kind = (found.lastgroup or "turn").partition("__")
    name = (found["opened"] or found["closed"]).lower() if family == "tag" else family.removesuffix("_glued")
    return Mark(family, kind, name, found.start(), found.end())
