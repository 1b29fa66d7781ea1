"""Whether an answer says that the notes do not hold it, in Chinese or English, by patterns."""

from __future__ import annotations

import re

from qilin_tasks.text.tokens import normalize

VERSION = "refusal-1"
#: A refusal says so at its beginning, or is all there is.
FIRST_CHARS = 120

_SOURCE = r"(?:笔记|资料|材料|文献|上下文|文中|内容|信息|文档)"
_IN = rf"{_SOURCE}(?:内容|信息)?(?:中|里面|里|当中|内)?"
_SAID = (
    "提到|提及|说明|说到|讲到|涉及|包含|包括|提供|给出|写到|写明|写|说|讨论|回答|找到|答案|相关|"
    "关于|介绍|记载|描述|看到|依据"
)
_HOLDS_NOT = "(?:没有|没能|没|未能|未见|未|不|无法|无|缺乏|缺少|找不到|查不到|看不出|得不出|不足)"
_ANSWER = (
    "回答|作答|答复|给出(?:明确|准确|具体|确切)?的?(?:答案|回答|推荐|建议)|"
    "提供(?:这方面的)?(?:答案|回答)|得出(?:结论|答案)|得知|得到答案|判断|确定|确认"
)

_PATTERNS = (
    # The notes do not hold it; not what a note says of a shop (`笔记说没有停车场`).
    rf"{_IN}(?:都|均|也|并|只\w{{1,8}}[,、])*?(?:[,、])?(?:{_HOLDS_NOT}(?:有)?(?:{_SAID}|足|能|到)|[找查]不到)",
    rf"{_IN}(?:没有|无|没)(?:[,、。]|$)",
    rf"{_IN}[^,、。]{{0,4}}(?:与|和|跟)[^,、。]{{0,6}}(?:问题|提问)[^,、。]{{0,4}}(?:无关|不相关|没有关系)",
    rf"{_IN}[^。]{{0,16}}[,、](?:但是?)?(?:都)?没有?(?:提到|提及|讲到|说到|涉及|写到)",
    (
        r"(?:没有|没能|未能?|找不到|查不到)(?:在|从)?[^,、。]{0,8}(?:找到|查到|看到|"
        r"发现)?[^,、。]{0,8}(?:相关|有关|足够|这个问题)[^,、。]{0,4}(?:的?)(?:信息|内容|资料|笔记|"
        r"答案|依据)(?!费|也)"
    ),
    r"(?:没有|没能|未能?|不能|无法|找不到|没法)[^,、。]{0,12}(?:答案|依据)(?:[,、。]|$)",
    r"没有(?:任何|一篇|哪篇|哪一篇)笔记",
    r"^(?:暂无|暂时没有|目前没有|无)(?:任何)?相关(?:的)?(?:信息|内容|资料|笔记)",
    r"^暂无答案|^没有答案|^未找到(?:答案|相关)",
    r"(?:信息|资料|内容|笔记)不足",
    (
        rf"(?:^|[,、。]|我|恐怕|暂时|因此|所以|难以|笔记|信息|资料|内容)(?:暂时)?(?:无法|不能|没办法|"
        rf"没有办法|没法|难以)(?:从\w{{1,8}}中|根据\w{{1,8}})?(?:准确|"
        rf"直接)?(?:{_ANSWER})(?:[^,、。的]{{0,12}}|[您你]的问题)(?:[,、。;]|$)"
    ),
    rf"(?:无法|不能|没法|没办法)(?:仅)?(?:从|根据|凭)[^,、。]{{0,14}}(?:{_ANSWER})",
    rf"(?:从|根据|仅凭)[^,、。]{{0,10}}{_SOURCE}[^,、。]{{0,4}}(?:无法|不能|看不出|得不出|找不到)",
    r"^(?:抱歉|对不起|不好意思|很抱歉)?[,、]?我?(?:不知道|不清楚)(?:[,、。]|答案|这个问题|$)",
    r"无法(?:为您|给您)?(?:编造|作答)",
    (
        r"\b(?:notes?|context|documents?|passages?|text|sources?)\b(?: provided| given)?[^.]{0,10}"
        r"(?:do(?:es)?\s?n[o']t|do(?:es)? not|did not|didn't|provides? no|contains? no|has no|have no)"
        r"\s*(?:mention|contain|include|provide|say|state|specify|cover|answer|information|$|any|\w+ information)"
    ),
    r"\b(?:no|not enough|insufficient|enough)\b (?:relevant )?(?:information|mention|notes?|answer)\b(?! fee)",
    r"\bno mention\b|\bnone of the (?:\w+ )?(?:notes|documents|passages)\b",
    (
        r"\bi(?: am|'m)? (?:\w+ )?(?:cannot|can't|can not|could not|couldn't|unable to|not able to|"
        r"do not|don't) (?:\w+ )?(?:answer|find|know|have enough|say)"
    ),
    r"^(?:unable to answer|unanswerable|cannot be answered|i(?: a|')m not sure)",
    (
        r"\b(?:answer|question|it|this)\b[^.,]{0,16}(?:is not|isn't|cannot be|can't be|"
        r"can not be) (?:\w+ )?(?:in the (?:\w+ )?(?:notes|context|documents)|mentioned|stated|"
        r"specified|determined|answered|found)"
    ),
)
_REFUSAL = re.compile(
    "|".join(f"(?:{pattern})" for pattern in _PATTERNS),
)


def is_refusal(answer: str | None) -> bool:
    """Whether the answer begins by saying that it can't be given; an empty answer says nothing. Never raises."""
    beginning = normalize((answer or "")[: FIRST_CHARS * 4].replace("，", "、")).strip()[:FIRST_CHARS]
    return _REFUSAL.search(beginning) is not None
