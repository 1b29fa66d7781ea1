"""Answers without reasoning: a table of outputs, and what holds for any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.parsing.answers import Answer, strip_reasoning

TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "好", " ", "<", "a\n"]),
    max_size=12,
).map("".join)
INSIDE = st.text(st.characters(exclude_characters="<>[]|", codec="utf-8"), max_size=40)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("用防晒霜。", "用防晒霜。"),
        ("  \n用防晒霜。\u3000\n", "用防晒霜。"),
        ("<think>先想想</think>用防晒霜。", "用防晒霜。"),
        ("<think>\n\n</think>\n\n用防晒霜。", "用防晒霜。"),
        ("<think>a</think>甲<think>b</think>乙", "甲乙"),
        ("<think>a<think>b</think>c</think>乙", "乙"),
        ("<think>I should close <think> well</think>乙", "乙"),
        ('<think time="3.2s">a</think>乙', "乙"),
        ("<think >a</think\n>乙", "乙"),
        ("<THINK>a</Think>乙", "乙"),
        ("<think/>乙", "乙"),
        ("<thinking>a</thinking>乙", "乙"),
        ("<thought>a</thought>乙", "乙"),
        ("<reasoning>a</reasoning>乙", "乙"),
        ("<seed:think>a</seed:think>乙", "乙"),
        ("<mm:think>a</mm:think>乙", "乙"),
        ("<think:opensource>a</think:opensource>乙", "乙"),
        ("[THINK]a[/THINK]乙", "乙"),
        ("<|START_THINKING|>a<|END_THINKING|>乙", "乙"),
        ("<think>a <reasoning>b</reasoning> c</think>乙", "乙"),
        ("a</think>乙", "乙"),
        ("a</think>b</think>乙", "乙"),
        ("</think>", ""),
        ("<think>a</think>", ""),
        ("<think>a</think><answer>乙</answer>", "乙"),
        ("<think>a</think>\n<answer>\n乙", "乙"),
        ("<answer>乙</answer>", "<answer>乙</answer>"),
        ("a < b, <thinker> and <thought experiment>", "a < b, <thinker> and <thought experiment>"),
        ("[think] is a word", "[think] is a word"),
        ("", ""),
        (None, ""),
        ("好\ud800", "好\ufffd"),
        ("😀", "😀"),
        ("<p>好</p>\x00", "<p>好</p>\x00"),
    ],
)
def test_finished(output: str | None, answer: str) -> None:
    assert strip_reasoning(output) == Answer(text=answer, unfinished=False)


@pytest.mark.parametrize(
    "output",
    [
        "<think>先想想",
        "<think>",
        "甲<think>先想想",
        "<think>a</think>甲<think>b",
        "<think>a</thinking>甲",
        "<think>a <reasoning>b</reasoning> c",
        "<think>a</thi",
        "[THINK]a",
        "<seed:think>a",
    ],
)
def test_unfinished(output: str) -> None:
    assert strip_reasoning(output) == Answer(text="", unfinished=True)


@pytest.mark.parametrize(
    ("output", "answer", "unfinished"),
    [
        ("先想想</think>\n\n用防晒霜。", "用防晒霜。", False),
        ("<think>先想想</think>用防晒霜。", "用防晒霜。", False),
        ("先想想</thinking>用防晒霜。", "用防晒霜。", False),
        ("先想想", "", True),
        ("", "", True),
        (None, "", True),
        ("a</think>甲<think>b", "", True),
    ],
)
def test_opened_by_the_prompt(output: str | None, answer: str, unfinished: bool) -> None:
    assert strip_reasoning(output, opened=True) == Answer(text=answer, unfinished=unfinished)


@settings(deadline=None)
@given(INSIDE, INSIDE, st.integers(0, 200))
def test_any_cut_inside_the_reasoning_leaves_nothing(reasoning: str, answer: str, cut: int) -> None:
    output = f"<think>{reasoning}</think>{answer}"
    assert strip_reasoning(output) == Answer(text=answer.strip(), unfinished=False)
    end = len("<think>") + min(cut, len(reasoning) + len("</think>") - 1)
    assert strip_reasoning(output[:end]) == Answer(text="", unfinished=True)
    assert strip_reasoning(output[len("<think>") : end], opened=True) == Answer(text="", unfinished=True)


@settings(deadline=None)
@given(st.text(st.characters(codec=None, categories=None)) | TAGGED, st.booleans())
def test_any_text_gives_an_answer(output: str, opened: bool) -> None:
    answer = strip_reasoning(output, opened=opened)
    answer.text.encode()
    assert answer.text == answer.text.strip()
    assert not (answer.unfinished and answer.text)
    assert "think>" not in answer.text or "think>" in output


@settings(deadline=None)
@given(INSIDE)
def test_text_without_tags_stays(output: str) -> None:
    assert strip_reasoning(output) == Answer(text=output.strip(), unfinished=False)


@pytest.mark.parametrize(
    ("unit", "answer"),
    [
        ("<think>", Answer("", True)),
        ("</think>", Answer("", False)),
        ("[THINK]", Answer("", True)),
        ("<think>a</think>b", Answer("b" * 5882, False)),
        ("<think ", Answer(("<think " * 14285).strip(), False)),
        ("<think a=", Answer("<think a=" * 11111, False)),
        ("好", Answer("好" * 100_000, False)),
    ],
)
def test_100_000_characters(unit: str, answer: Answer) -> None:
    assert strip_reasoning(unit * (100_000 // len(unit))) == answer
