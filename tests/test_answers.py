"""Answers without reasoning: a table of outputs, and what holds for any text."""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qilin_tasks.parsing.answers import Answer, strip_reasoning
from qilin_tasks.parsing.marks import marks
from qilin_tasks.parsing.prompts import whole_response

TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "好", " ", "<", "a\n"]),
    max_size=12,
).map("".join)
INSIDE = st.text(st.characters(exclude_characters="<>[]|", codec="utf-8"), max_size=40).filter(
    lambda text: not list(marks(text))
)

# What opens reasoning, what ends it, and what some templates write behind the answer. The names are those of vLLM's
# reasoning parsers, which `test_every_reasoning_parser_of_vllm_is_here` holds this table to.
TAG = ("<think>", "</think>", "")
HARMONY = "<|start|>assistant<|channel|>{}<|message|>"
NOTATIONS = {
    **dict.fromkeys(
        ["deepseek_r1", "deepseek_v3", "deepseek_v4", "deepseek_v41", "poolside_v1", "glm45", "glm47"], TAG
    ),
    **dict.fromkeys(
        ["ling3", "granite_thinking_parser", "hf", "holo2", "kimi_k2", "mimo", "minicpmv", "minimax_m2"], TAG
    ),
    **dict.fromkeys(["minimax_m2_append_think", "nemotron_v3", "olmo3", "qwen3", "step3", "step3p5"], TAG),
    "cohere_command3": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "cohere_command4": ("<|START_THINKING|>", "<|END_THINKING|><|START_TEXT|>", "<|END_TEXT|>"),
    "ernie45": ("<think>", "</think>\n\n<response>\n", "\n</response>\n"),
    "gemma4": ("<|channel>thought\n", "<channel|>", "<turn|>"),
    "openai_gptoss": ("<|channel|>analysis<|message|>", "<|end|>" + HARMONY.format("final"), "<|return|>"),
    "granite": ("Here is my thought process:", "Here is my response:", ""),
    "hunyuan_a13b": ("<think>\n", "\n</think>\n<answer>\n", "\n</answer>"),
    "hy_v3": ("<think:opensource>", "</think:opensource>", ""),
    "hy_v4": ("<think:v4>", "</think:v4>", ""),
    "inkling": (
        "<|message_model|><|content_thinking|>",
        "<|end_message|><|message_model|><|content_text|>",
        "<|end_message|><|content_model_end_sampling|>",
    ),
    "k2_horizon": ("<ifm|think_faster>", "</ifm|think_faster>", ""),
    "kimi_k3": (
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|><|open|>response<|sep|>",
        "<|close|>response<|sep|><|close|>message<|sep|>",
    ),
    "minimax_m3": ("<mm:think>", "</mm:think>", ""),
    "mistral": ("[THINK]", "[/THINK]", ""),
    "muse_glimmer": ("to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>", "<|eot|>"),
    "plamo3": ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", ""),
    "seed_oss": ("<seed:think>", "</seed:think>", ""),
}
OTHER_NOTATIONS = {
    "Kimi-VL": ("◁think▷", "◁/think▷", ""),
    "Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>\n\n<|begin_of_solution|>", "<|end_of_solution|>"),
    "Sky-T1 without an end": ("<|begin_of_thought|>", "<|begin_of_solution|>", ""),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>", ""),
    "Solar": ("<|think|>", "<|end|><|begin|>assistant<|content|>", "<|end|>"),
    "harmony, low effort": ("<|channel|>analysis<|message|>", "<|end|>", "<|return|>"),
    "harmony, no end": ("<|channel|>analysis<|message|>", HARMONY.format("final"), ""),
    "harmony, JSON": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
        "<|return|>",
    ),
    "harmony, preamble": (
        "<|channel|>analysis<|message|>",
        "<|end|>" + HARMONY.format("commentary") + "I will look.<|end|>" + HARMONY.format("final"),
        "<|return|>",
    ),
    "harmony, a tool": (
        "<|channel|>analysis<|message|>",
        "<|end|>" + HARMONY.format("commentary to=functions.search") + "{}<|call|>" + HARMONY.format("final"),
        "<|return|>",
    ),
    "harmony, two thoughts": (
        "<|channel|>analysis<|message|>",
        "<|end|>" + HARMONY.format("analysis") + "again<|end|>" + HARMONY.format("final"),
        "<|return|>",
    ),
    "harmony, glued": ("analysis", "assistantfinal", ""),
    "harmony, glued preamble": ("analysis", "assistantcommentary好的assistantfinal", ""),
    "Granite, as quantized": ("Here's my thought process:", "Here's my response:", ""),
    "reasoning": ("<reasoning>", "</reasoning>", ""),
}
ALL = {**NOTATIONS, **OTHER_NOTATIONS}


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


def test_every_reasoning_parser_of_vllm_is_here() -> None:
    spec = find_spec("vllm")
    if spec is None or spec.origin is None:
        pytest.skip("vLLM is not installed")
    source = (Path(spec.origin).parent / "reasoning" / "__init__.py").read_text(encoding="utf-8")
    tables = [node.value for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    names = {key.value for table in tables if isinstance(table, ast.Dict) for key in table.keys}
    assert "deepseek_r1" in names
    assert names == NOTATIONS.keys(), "look up what the new parsers split at, and add it to parsing/marks.py"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("reasoning", ["先想一想，苹果", "We need [2] > [1].\n\nSo: yes.", "想 **一想**"])
@pytest.mark.parametrize("answer", ["苹果很甜。", "**Apples** are sweet.\n\n- red", "[1] > [2]"])
def test_every_notation(name: str, reasoning: str, answer: str) -> None:
    opening, ending, behind = ALL[name]
    assert strip_reasoning(f"{opening}{reasoning}{ending}{answer}{behind}") == Answer(answer, unfinished=False)
    # As a prompt's template opens it, or as nobody tells us that it did.
    given = whole_response(f"问{opening}", f"{reasoning}{ending}{answer}{behind}")
    if opening not in ("analysis", "Here is my thought process:", "Here's my thought process:"):
        assert strip_reasoning(given) == Answer(answer, unfinished=False)
    assert strip_reasoning(f"{reasoning}{ending}{answer}{behind}", opened=True) == Answer(answer, unfinished=False)


@pytest.mark.parametrize("name", ALL)
def test_every_notation_cut_off_anywhere_before_the_answer(name: str) -> None:
    opening, ending, _ = ALL[name]
    output = f"{opening}先想一想，苹果{ending}"
    for end in range(len(opening) + 1, len(output) + 1):
        assert strip_reasoning(output[:end]).text == "", output[:end]
    assert strip_reasoning(f"{opening}先想一想，苹果") == Answer("", unfinished=True)


@pytest.mark.parametrize("case", range(9))
def test_cases_that_went_wrong(case: int, shared: Path) -> None:
    lines = (shared / "cases" / "reasoning.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 9
    row = json.loads(lines[case])
    parsed = strip_reasoning(whole_response(row["prompt_ends"], row["text"]))
    assert (parsed.text, parsed.unfinished) == (row["answer"], row["unfinished"]), row["kind"]


CLOSING = ["</think>", "</thinking>", "[/THINK]", "◁/think▷", "<|END_THINKING|>", "<|end_of_thought|>", "<channel|>"]


@pytest.mark.parametrize("closing", CLOSING)
@pytest.mark.parametrize("behind", ["", "\n", "<|im_end|>", "\n</s>\n", "<|eot_id|>"])
def test_a_closing_mark_behind_which_nothing_comes(closing: str, behind: str) -> None:
    opening = {"</think>": "<think>", "[/THINK]": "[THINK]"}.get(closing)
    assert strip_reasoning(f"苹果很甜。{closing}{behind}") == Answer("苹果很甜。", unfinished=False)
    assert strip_reasoning(f"苹果很甜。\n{closing}\n{closing}{behind}") == Answer("苹果很甜。", unfinished=False)
    if opening:
        assert strip_reasoning(whole_response(f"问{opening}\n", f"苹果很甜。{closing}{behind}")).text == ""
        assert strip_reasoning(f"{opening}想{closing}苹果很甜。\n{closing}{behind}").text == "苹果很甜。"
    # With an answer behind it the prompt had opened the reasoning.
    assert strip_reasoning(f"想一想{closing}苹果很甜。{behind}") == Answer("苹果很甜。", unfinished=False)


MENTIONS = [
    "模型会先写 `{}` 再回答。",
    "`{}` 是一个标签。",
    "先写“{}”，再写答案。",
    "标签「{}」表示思考。",
    "标签《{}》表示思考。",
    'It writes "{}" first.',
    "It writes '{}' first.",
    "It writes **{}** first.",
    "The mark ({}) comes first.",
    "The {} mark comes first.",
    "The pair `{0} … {0}` is a mark.",
    "格式：“先{}再答”。",
    "格式如下：\n```\n{}\n想\n```\n完。",
    "格式如下：\n```xml\n{0}想{0}\n```",
]


@pytest.mark.parametrize(
    "mark", ["<think>", "</think>", "[THINK]", "◁/think▷", "<|channel|>analysis<|message|>", "</s>"]
)
@pytest.mark.parametrize("sentence", MENTIONS)
def test_a_mark_that_the_answer_speaks_of_is_text(sentence: str, mark: str) -> None:
    answer = sentence.format(mark)
    assert strip_reasoning(f"<think>想</think>{answer}") == Answer(answer, unfinished=False)
    assert strip_reasoning(f"想[/THINK]{answer}") == Answer(answer, unfinished=False)
    if not sentence.startswith("The {}"):
        assert strip_reasoning(answer) == Answer(answer, unfinished=False)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("<think>I should write `</think>` at the end.</think>乙", "乙"),
        ("<think>I should write `</think>` at the end. </think> 乙", "乙"),
        ("<think>He said “</think>”.</think>“乙”", "“乙”"),
        ("<think>it is **done**</think>**乙**", "**乙**"),
        ('<think>it is "done"</think>"乙"', '"乙"'),
        ("<think>用 `x`</think>`乙`", "`乙`"),
        ("Let me think. </think> The answer is 乙", "The answer is 乙"),
        ('"<think>想</think>乙"', '"乙"'),
        ("```\n<think>想</think>\n乙\n```", "```\n\n乙\n```"),
        ("甲 <think>想</think> 乙", "甲  乙"),
        ("<think>a</think>甲\n<think>b</think>\n乙", "甲\n\n乙"),
    ],
)
def test_quotes_around_marks_that_are_none(output: str, answer: str) -> None:
    assert strip_reasoning(output) == Answer(answer, unfinished=False)


UNKNOWN = [
    "<|channel|>musing<|message|>",
    "<|channel>musing\n",
    "<scratchpad>",
    "</reflection>",
    "<inner_monologue>",
    "<analysis>",
    "<chain-of-thought>",
    "[REASONING]",
    "◁reason▷",
    "<|plan|>",
    "<|musing>",
    "<musing|>",
    "<｜思考｜>",
    "&lt;think&gt;",
]


@pytest.mark.parametrize("mark", UNKNOWN)
def test_unknown_marks_are_counted_and_stay(mark: str) -> None:
    assert strip_reasoning(f"{mark}苹果很甜。") == Answer(f"{mark}苹果很甜。", unfinished=False, unknown_marks=1)
    assert strip_reasoning(f"<think>想</think>{mark}苹果{mark}") == Answer(f"{mark}苹果{mark}".strip(), False, 2)
    assert strip_reasoning(f"<think>{mark}想</think>苹果") == Answer("苹果", unfinished=False)
    assert strip_reasoning(f"写 `{mark.strip()}` 再答") == Answer(f"写 `{mark.strip()}` 再答", unfinished=False)


def test_an_unknown_channel_before_the_final_one() -> None:
    output = "<|channel|>musing<|message|>嗯<|end|><|start|>assistant<|channel|>final<|message|>苹果<|return|>"
    assert strip_reasoning(output) == Answer("苹果", unfinished=False, unknown_marks=1)
    assert strip_reasoning("<|channel>musing\n嗯<channel|>苹果").text == "<|channel>musing\n嗯<channel|>苹果"
    # Gemma's label without its marks: what is reasoning can't be told.
    assert strip_reasoning("thought\n苹果") == Answer("thought\n苹果", unfinished=False, unknown_marks=1)


@pytest.mark.parametrize(
    "answer",
    [
        "analysis of apples: sweet",
        "analysis: sweet",
        "final remarks: sweet",
        "The assistantfinal exam",
        "Here is my response: sweet",
        "a <b>bold</b> <i>word</i> [NOTE] [1] <https://example.org> x <- y -> z | < >",
        "x < think > y",
        "I think </b> so",
        "<html><body>reasons</body></html>",
        "<s>struck</s> out",
    ],
)
def test_what_only_looks_like_a_mark_to_a_careless_eye(answer: str) -> None:
    assert strip_reasoning(answer) == Answer(answer, unfinished=False)


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("final苹果很甜。", "苹果很甜。"),
        ("assistantfinalThe answer", "The answer"),
        ("<|channel|>final<|message|>苹果<|return|>", "苹果"),
        ("<|start|>assistant<|message|>苹果<|end|>", "苹果"),
        ("苹果<|im_end|>\n<|endoftext|>", "苹果"),
        ("苹果<|im_end|>\n<|im_start|>user\n问", "苹果<|im_end|>\n<|im_start|>user\n问"),
        ("苹果<end_of_turn>", "苹果"),
        ("苹果</s>", "苹果"),
    ],
)
def test_no_reasoning_but_marks_of_the_turn(output: str, answer: str) -> None:
    assert strip_reasoning(output) == Answer(answer, unfinished=False)


MARKED = st.lists(
    st.sampled_from([*(part for row in ALL.values() for part in row if part), *UNKNOWN, *CLOSING])
    | st.sampled_from(["好", " ", "\n", "`", '"', "“", "”", "```", "assistant", "<", ">", "|"]),
    max_size=14,
).map("".join)


@settings(max_examples=300)
@given(MARKED, st.booleans())
def test_any_mix_of_marks_gives_an_answer_that_is_part_of_the_text(output: str, opened: bool) -> None:
    answer = strip_reasoning(output, opened=opened)
    assert not (answer.unfinished and answer.text)
    assert answer.unknown_marks >= 0
    left = iter(output)
    assert all(character in left for character in answer.text)
    assert isinstance(whole_response(output, "答"), str)
