from __future__ import annotations

import pytest

from qilin_tasks.dqa.baselines import BASELINES, lead, reference


def doc(*contents, **rest):
    return {"notes": [{"title": "题", "content": content} for content in contents], **rest}


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (doc(), ""),
        (doc("一。二！三？四。五。六。"), "一。二！三？四。五。"),
        (doc("甲一。甲二。甲三。", "乙一\n乙二"), "甲一。乙一甲二。乙二甲三。"),
        (doc("“好吃！”他说。", ""), "“好吃！”题他说。"),
        (doc("a。", "b。", "c。", "d。", "e。", "f。"), "a。b。c。d。e。"),
    ],
)
def test_lead_takes_five_sentences_in_turns(document, answer):
    assert lead(document) == answer


def test_floor_and_ceiling():
    assert BASELINES["empty"].generate(doc("一。")) == ""
    assert reference(doc(reference="答")) == "答"
