from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qilin_tasks.parsing.rankings import ParsedRanking, parse_ranking, render_ranking

# (what a model wrote, number of candidates, the ids it ranked)
OUTPUTS: list[tuple[str, int, tuple[int, ...]]] = [
    # the form that is asked for, and its variants
    ("[3] > [1] > [2]", 3, (3, 1, 2)),
    ("[3]>[1]>[2]", 3, (3, 1, 2)),
    ("[3] > [1] > [2].\n", 3, (3, 1, 2)),
    ("  [3]  >  [1] >\n[2]", 3, (3, 1, 2)),
    ("[3] > [1]\n> [2]", 3, (3, 1, 2)),
    ("[3] >> [1] >> [2]", 3, (3, 1, 2)),
    ("[3] ≻ [1] ≻ [2]", 3, (3, 1, 2)),
    ("[3] → [1] → [2]", 3, (3, 1, 2)),
    ("[3] -> [1] -> [2]", 3, (3, 1, 2)),
    ("[3] &gt; [1] &gt; [2]", 3, (3, 1, 2)),
    ("[3] = [1] > [2]", 3, (3, 1, 2)),
    ("[2] < [1] < [3]", 3, (3, 1, 2)),
    ("[ 3 ] > [ 1 ] > [02]", 3, (3, 1, 2)),
    ("[3], [1], [2]", 3, (3, 1, 2)),
    ("[3] [1] [2]", 3, (3, 1, 2)),
    ("[3][1][2]", 3, (3, 1, 2)),
    ("[3]、[1]、[2]", 3, (3, 1, 2)),
    ("[3], [1] and [2]", 3, (3, 1, 2)),
    ("[3]，[1]和[2]。", 3, (3, 1, 2)),
    ("[3]", 3, (3,)),
    # full-width, Chinese and Thai
    ("［３］＞［１］＞［２］", 3, (3, 1, 2)),
    ("【3】>【1】>【2】", 3, (3, 1, 2)),
    ("【３】、【１】、【２】", 3, (3, 1, 2)),
    ("排序结果：[3] > [1] > [2]", 3, (3, 1, 2)),
    ("根据与查询的相关性，排序如下：\n[3] > [1] > [2]\n", 3, (3, 1, 2)),
    ("[文档3] > [文档1] > [文档2]", 3, (3, 1, 2)),
    ("笔记3 > 笔记1 > 笔记2", 3, (3, 1, 2)),
    ("相关性从高到低：３，１，２", 3, (3, 1, 2)),
    ("第1名：[3]\n第2名：[1]\n第3名：[2]", 3, (3, 1, 2)),
    ("第1名：3\n第2名：1\n第3名：2", 3, (3, 1, 2)),
    ("[๓] > [๑] > [๒]", 3, (3, 1, 2)),
    ("ลำดับ: ๓, ๑, ๒", 3, (3, 1, 2)),
    ("อันดับ 1: [3]\nอันดับ 2: [1]\nอันดับ 3: [2]", 3, (3, 1, 2)),
    ("[3] และ [1] และ [2]", 3, (3, 1, 2)),
    # JSON and code
    ("[3, 1, 2]", 3, (3, 1, 2)),
    ('["3", "1", "2"]', 3, (3, 1, 2)),
    ('["[3]", "[1]", "[2]"]', 3, (3, 1, 2)),
    ("[[3], [1], [2]]", 3, (3, 1, 2)),
    ("```json\n[3, 1, 2]\n```", 3, (3, 1, 2)),
    ("```json\n[\n  3,\n  1,\n  2\n]\n```\nNote 1 is about scarves.", 3, (3, 1, 2)),
    ('```json\n{"ranking": [3, 1, 2]}\n```', 3, (3, 1, 2)),
    ('{"ranking": ["3", "1", "2"], "confidence": 0.8}', 3, (3, 1, 2)),
    ('[{"id": 3, "score": 0.9}, {"id": 1, "score": 0.7}, {"id": 2, "score": 0.1}]', 3, (3, 1, 2)),
    ('[{"id": 1, "rank": 2}, {"id": 2, "rank": 3}, {"id": 3, "rank": 1}]', 3, (3, 1, 2)),
    ("```\n[3] > [1] > [2]\n```", 3, (3, 1, 2)),
    ("`[3] > [1] > [2]`", 3, (3, 1, 2)),
    (r"\[3\] > \[1\] > \[2\]", 3, (3, 1, 2)),
    (r"$\boxed{[3] > [1] > [2]}$", 3, (3, 1, 2)),
    (r"$[3] \succ [1] \succ [2]$", 3, (3, 1, 2)),
    ("<answer>[3] > [1] > [2]</answer>", 3, (3, 1, 2)),
    # lists: ordinals are not ids
    ("1. [4]\n2. [1]\n3. [3]\n4. [2]", 4, (4, 1, 3, 2)),
    ("1) [4]\n2) [1]\n3) [3]\n4) [2]", 4, (4, 1, 3, 2)),
    ("1. [4] 2. [1] 3. [3] 4. [2]", 4, (4, 1, 3, 2)),
    ("1. [4] 羊绒围巾怎么选\n2. [1] 手套推荐\n3. [3] 帽子\n4. [2] 2023年的笔记", 4, (4, 1, 3, 2)),
    (
        "1. **[4]** - best, better than [2]\n2. **[1]** - good\n3. **[3]** - so-so\n4. **[2]** - off topic",
        4,
        (4, 1, 3, 2),
    ),
    ("1. [4]\n   It answers the query.\n2. [1]\n   It mentions [4].\n3. [3]\n   No.\n4. [2]\n   No.", 4, (4, 1, 3, 2)),
    ("1. [4]\n1. [1]\n1. [3]\n1. [2]", 4, (4, 1, 3, 2)),
    ("- [4]\n- [1]\n- [3]\n- [2]", 4, (4, 1, 3, 2)),
    ("* [4]\n\n* [1]\n\n* [3]\n\n* [2]", 4, (4, 1, 3, 2)),
    ("| rank | id |\n|---|---|\n| 1 | [3] |\n| 2 | [1] |\n| 3 | [2] |", 3, (3, 1, 2)),
    ("| rank | id |\n|---|---|\n| 1 | 3 |\n| 2 | 1 |\n| 3 | 2 |", 3, (3, 1, 2)),
    ("Rank 1: [3]\nRank 2: [1]\nRank 3: [2]", 3, (3, 1, 2)),
    ("1st: [3], 2nd: [1], 3rd: [2]", 3, (3, 1, 2)),
    ("1. Passage 4\n2. Passage 1\n3. Passage 3\n4. Passage 2", 4, (4, 1, 3, 2)),
    ("1. 4\n2. 1\n3. 3\n4. 2", 4, (4, 1, 3, 2)),
    ("4\n1\n3\n2", 4, (4, 1, 3, 2)),
    ("4\n\n1\n\n3\n\n2\n", 4, (4, 1, 3, 2)),
    ("[4]\n[1]\n[3]\n[2]", 4, (4, 1, 3, 2)),
    # scores and titles beside the ids
    ("[3] (0.95) > [1] (0.80) > [2] (0.1)", 3, (3, 1, 2)),
    ("[3]: 0.95\n[1]: 0.80\n[2]: 0.10", 3, (3, 1, 2)),
    ("[3] (score: 9), [1] (score: 7), [2] (score: 2)", 3, (3, 1, 2)),
    ("[3] 羊绒围巾 > [1] 手套 > [2] 帽子", 3, (3, 1, 2)),
    # labelled and bare
    ("Passage 3 > Passage 1 > Passage 2", 3, (3, 1, 2)),
    ("Document 3, Document 1, then Document 2", 3, (3, 1, 2)),
    ("D3 > D1 > D2", 3, (3, 1, 2)),
    ("#3 > #1 > #2", 3, (3, 1, 2)),
    ("3, 1, 2", 3, (3, 1, 2)),
    ("3,1,2", 3, (3, 1, 2)),
    ("3 > 1 > 2", 3, (3, 1, 2)),
    ("3 1 2", 3, (3, 1, 2)),
    ("(3, 1, 2)", 3, (3, 1, 2)),
    ("3；1；2。", 3, (3, 1, 2)),
    ("Ranking: 3, 1, 2", 3, (3, 1, 2)),
    ("The final ranking is: 3 > 1 > 2.", 3, (3, 1, 2)),
    ("So 3 > 1 > 2, as the query asks for scarves.", 3, (3, 1, 2)),
    ("Answer: 3", 3, (3,)),
    ("答案：3", 3, (3,)),
    # prose around the ranking
    ("Here are the 20 passages ranked: [3] > [1] > [2]", 20, (3, 1, 2)),
    ("20 passages: [3] > [1]", 20, (3, 1)),
    ("20 passages: 3 > 1 > 2", 20, (3, 1, 2)),
    ("The most relevant passage is [3].", 3, (3,)),
    (
        "I considered all 3 notes from 2023. [2] is weak.\n\n[3] > [1] > [2]\n\nLet me know if you need 5 more.",
        5,
        (3, 1, 2),
    ),
    ("1. 笔记[3]：羊绒\n2. 笔记[1]：帽子\n3. 笔记[2]：手套", 3, (3, 1, 2)),
    ("文档[3] > 文档[1] > 文档[2]", 3, (3, 1, 2)),
    ("passage [3], passage [1], passage [2]", 3, (3, 1, 2)),
    ("最终答案：[3] > [1] > [2]。其中[3]最相关，[1]次之。", 3, (3, 1, 2)),
    ("Final ranking: [3], [1], [2]. Scores: [3]=9, [1]=7, [2]=2", 3, (3, 1, 2)),
    ("Top 3: 3, 1, 2", 3, (3, 1, 2)),
    ("```python\nranking = [3, 1, 2]\n```", 3, (3, 1, 2)),
    ("① [3]\n② [1]\n③ [2]", 3, (3, 1, 2)),
    ("[2023年穿搭] 不错", 3, ()),
    ("1. 3 - 羊绒\n2. 1 - 帽子", 3, ()),
    # several rankings: the last complete one, else the longest
    ("First idea: [1] > [2] > [3]\nFinal: [3] > [1] > [2]", 3, (3, 1, 2)),
    ("[3] > [1] > [2]\nBut [1] > [2] is close.", 3, (3, 1, 2)),
    ("[3] > [1] > [2] > [5]\nNote that [4] is off topic.", 5, (3, 1, 2, 5)),
    ("1. [1]\n2. [2]\n3. [3]\n\nAfter a second look:\n1. [3]\n2. [1]\n3. [2]", 3, (3, 1, 2)),
    ("[1] 围巾\n[2] 帽子\n[3] 手套\n\n排序：[3] > [1]", 3, (3, 1)),
    # reasoning
    ("<think>[1] > [2] > [3] looks right</think>\n[3] > [1] > [2]", 3, (3, 1, 2)),
    ("[1] > [2] > [3] at first</think>[3] > [1] > [2]", 3, (3, 1, 2)),
    ("<think>Passage [3] is about scarves, so [3] > [1]", 3, ()),
    # faults
    ("[3] > [1] > [3] > [2]", 3, (3, 1, 2)),
    ("[3] > [9] > [1]", 3, (3, 1)),
    ("[0] > [3] > [-1] > [1]", 3, (3, 1)),
    ("[3] > [1] > [2", 3, (3, 1)),
    ("[13, 2, 1", 20, (13, 2)),
    ("[13, 2, 1,", 20, (13, 2, 1)),
    # nothing that is a ranking
    ("", 3, ()),
    ("   \n\n", 3, ()),
    ("I can't rank these passages.", 3, ()),
    ("There are 3 passages and 2 are relevant.", 3, ()),
    ("1. 羊绒围巾怎么选\n2. 手套推荐\n3. 帽子", 3, ()),
    ("1.\n2.\n3.", 3, ()),
    ("2023", 3, ()),
    ("In 2023, 3 of 20 notes matched.", 20, ()),
    ("Time: 10:30", 30, ()),
    ("1.5, 2.5", 3, ()),
    ("抱歉，我无法对这些笔记排序。", 3, ()),
    ("Score: 2", 3, ()),
    ("\x00[[[[>>>>", 3, ()),
]


# Scores below nought and beyond what a float holds: made for the parser, not seen from a model as those above are.
EDGES: list[tuple[str, int, tuple[int, ...]]] = [
    ('{"3": 1e309}', 3, (3,)),
    ('{"1": 2, "3": [1e309]}', 3, (3, 1)),
    ('{"1": -2.5, "2": 1.0, "3": 2.5}', 3, (3, 2, 1)),
    ('[{"id": 1, "score": -0.2}, {"id": 2, "score": -0.1}, {"id": 3, "score": -3e2}]', 3, (2, 1, 3)),
]


@pytest.mark.parametrize(("text", "n", "ids"), [*OUTPUTS, *EDGES], ids=lambda value: repr(value)[:60])
def test_real_looking_outputs(text: str, n: int, ids: tuple[int, ...]) -> None:
    assert parse_ranking(text, n=n).ids == ids


def test_the_table_is_as_long_as_promised() -> None:
    assert len({text for text, _, _ in OUTPUTS}) >= 60


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("[3] > [1] > [2]", 3, ParsedRanking((3, 1, 2), 0, 0, 0, valid=True, unfinished=False)),
        ("[3] > [1]", 3, ParsedRanking((3, 1), 0, 0, 1, valid=False, unfinished=False)),
        ("[3] > [3] > [7] > [0] > [1]", 3, ParsedRanking((3, 1), 1, 2, 1, valid=False, unfinished=False)),
        ("[7] > [8]", 3, ParsedRanking((), 0, 2, 3, valid=False, unfinished=False)),
        ("[3] > [1] > [2] > [2]", 3, ParsedRanking((3, 1, 2), 1, 0, 0, valid=False, unfinished=False)),
        ("<think>[3]", 3, ParsedRanking((), 0, 0, 3, valid=False, unfinished=True)),
        ("[1]", 0, ParsedRanking((), 0, 1, 0, valid=False, unfinished=False)),
    ],
)
def test_faults_are_counted(text: str, n: int, expected: ParsedRanking) -> None:
    assert parse_ranking(text, n=n) == expected


def test_none_is_an_empty_ranking() -> None:
    assert parse_ranking(None, n=2) == ParsedRanking((), 0, 0, 2, valid=False, unfinished=False)


def test_a_prompt_that_opened_the_reasoning() -> None:
    assert parse_ranking("[1] > [2]", n=2, opened=True).unfinished
    assert parse_ranking("[1] > [2] </think> [2] > [1]", n=2, opened=True).ids == (2, 1)


FRAGMENTS = ["[1]", "[2]", "[3]", " > ", ", ", "\n", "1. ", "2) ", "3", "７", "๓", "【4】", "[", "]", "{", "}", "id: 2"]
FRAGMENTS += [
    "<think>",
    "</think>",
    "Passage 2",
    "笔记3",
    "```",
    "：",
    "2023",
    "->",
    "(0.5)",
    "\\boxed{",
    "&gt;",
    "and ",
]
FRAGMENTS += ["排序", "Rank 1: ", "- ", "|", "9" * 30, "\ud800", '{"3": ', "[[1, ", "1e309", "-1e999", "]]"]
fragments = st.sampled_from(FRAGMENTS)
texts = st.one_of(st.text(), st.lists(fragments, max_size=40).map("".join))


@settings(deadline=None)
@given(texts, st.integers(0, 12))
@example("[" + "1" * 5000 + "]", 3)
@example("²³ ½ ① ㈠", 3)
def test_never_raises_and_gives_a_permutation_of_a_subset(text: str, n: int) -> None:
    parsed = parse_ranking(text, n=n)
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert set(parsed.ids) <= set(range(1, n + 1))
    assert parsed.missing == n - len(parsed.ids)
    assert parsed.duplicates >= 0
    assert parsed.invented >= 0
    assert parsed.valid == (n > 0 and parsed.missing == parsed.duplicates == parsed.invented == 0)


@settings(deadline=None)
@given(texts, st.integers(0, 12))
def test_idempotent_on_its_own_rendering(text: str, n: int) -> None:
    ids = parse_ranking(text, n=n).ids
    again = parse_ranking(render_ranking(ids), n=n)
    assert (again.ids, again.duplicates, again.invented) == (ids, 0, 0)


@settings(deadline=None)
@given(
    st.permutations(range(1, 31)), st.sampled_from(["[{}]", "【{}】", "{}"]), st.sampled_from([" > ", ", ", "\n", "、"])
)
def test_every_permutation_in_every_notation(ids: list[int], form: str, separator: str) -> None:
    assert parse_ranking(separator.join(form.format(i) for i in ids), n=30).valid


UNITS = [
    "1.. ",
    "[1]. ",
    ": 12.",
    "(1).",
    "1 , ",
    " ",
    "[1 ",
    "{id: 1",
    "> ",
    "Passage 1 ",
    "1: ",
    "- ",
    "[",
    "1 > ",
    "9",
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", [*UNITS, "\n", "[1] > ", "1. [2] x\n", "ก ", "<", "&", "\\["])
def test_a_looping_model_does_not_hang_the_parser(unit: str) -> None:
    # Models that loop fill their whole budget; a pattern that backtracks would then never come back.
    assert parse_ranking(unit * 20_000 + "[x", n=20).missing >= 18
