from __future__ import annotations

import pytest

from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.prompts import opening_tag, whole_response


@pytest.mark.parametrize(
    ("prompt", "tag"),
    [
        ("<|user|>问<|assistant|><think>\n", "<think>"),
        ("问[THINK]", "[THINK]"),
        ("问<seed:think>", "<seed:think>"),
        ("问<|START_THINKING|>", "<|START_THINKING|>"),
        ("问◁think▷", "◁think▷"),
        ("问<|open|>think<|sep|>", "<|open|>think<|sep|>"),
        ("问<ifm|think_fast>\n", "<ifm|think_fast>"),
        ("问<|begin_of_thought|>\n\n", "<|begin_of_thought|>"),
        ("<|turn>model\n<|channel>thought\n", "<|channel>thought"),
        ("<|end|><|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>analysis<|message|>"),
        ("<|end|><|start|>assistant<|channel|>", "<|start|>assistant<|channel|>"),
        ("<|end|><|start|>assistant<|channel|>final<|message|>", ""),
        ("<|end|><|start|>assistant", ""),
        ("问<think/>", ""),
        ("问</think>", ""),
        ("问<scratchpad>", ""),
        ("<think>" * 100, "<think>"),
        ("<|assistant|><think>\n\n</think>\n\n", ""),
        ("什么是 <think> 标签？\n回答：", ""),
        ("<|im_start|>assistant\n", ""),
        ('[{"role": "user", "content": "问"}]', ""),
        ("", ""),
        (("不是", "文字"), ""),
    ],
)
def test_opening_tag(prompt, tag):
    assert opening_tag(prompt) == tag


@pytest.mark.parametrize("tag", ["<think>", "<thinking>\n", "[THINK]", "<|START_THINKING|>"])
def test_a_response_to_an_open_block_is_unfinished_until_it_closes(tag):
    closing = {"[": "[/THINK]", "<|": "<|END_THINKING|>"}.get(tag[:2] if tag[1] == "|" else tag[0])
    closing = closing or tag.strip().replace("<", "</")
    assert strip_reasoning(whole_response("问" + tag, "想")).unfinished
    assert strip_reasoning(whole_response("问" + tag, f"想{closing}答")).text == "答"
    assert whole_response("问" + tag, None) is None and whole_response("问", "答") == "答"
