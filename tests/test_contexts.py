from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from qilin_tasks.text.notes import note_budgets, plain, show_notes, trim


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, ""),
        ("#露营[话题]##装备[话题]# 周末", "#露营 #装备 周末"),
        ("第一行\r\n\n\n  第二行\t 完", "第一行\n第二行 完"),
        ("价格 #不是标签 100", "价格 #不是标签 100"),
        ("半个\ud83d字", "半个\ufffd字"),
    ],
)
def test_plain(text, shown):
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "budget", "shown"),
    [
        ("十个字的一句话就到这", 10, "十个字的一句话就到这"),
        ("十个字的一句话就到这", 5, "十个字的…"),
        ("一家人👨‍👩‍👧出门", 6, "一家人…"),
        ("cafe\u0301 bar", 5, "caf…"),
        ("🇹🇭🇩🇪🇫🇷", 4, "🇹🇭…"),
        ("हिन्दी भाषा", 5, "हि…"),
        ("\u1100\u1161\u11a8\u1100\u1161", 4, "\u1100\u1161\u11a8…"),
        ("a" + "\u0301" * 9, 5, "…"),
        ("很长", 1, "…"),
        ("很长", 0, ""),
    ],
)
def test_trim(text, budget, shown):
    assert trim(text, budget) == shown


@given(st.text(), st.integers(0, 50))
def test_trim_never_exceeds_the_budget_and_keeps_the_beginning(text, budget):
    shown = trim(text, budget)
    assert len(shown) <= budget or shown == text
    assert text.startswith(shown.removesuffix("…").rstrip()) or shown == text


@given(
    st.text(st.sampled_from("aกำ\u0e31\u0301ู👨👩\u200d\ufe0f🏽🇹🇭हिन्\u1100\u1161\u11a8\r\n "), max_size=40),
    st.integers(1, 30),
)
def test_trim_keeps_whole_clusters_and_as_many_as_fit(text, budget):
    clusters = regex.findall(r"\X", text)
    shown = trim(text, budget)
    if len(text) <= budget:
        assert shown == text
        return
    kept = max(n for n in range(len(clusters) + 1) if len("".join(clusters[:n])) <= budget - 1)
    assert shown == "".join(clusters[:kept]).rstrip() + "…"


@pytest.mark.parametrize(
    ("lengths", "budgets"),
    [
        ([100, 100], [100, 100]),
        ([900, 100], [600, 100]),
        ([600, 600, 100], [350, 350, 100]),
        ([600, 50, 600, 600], [250, 50, 250, 250]),
        ([], []),
    ],
)
def test_the_longest_notes_give_way_first(lengths, budgets):
    assert note_budgets(lengths, note_chars=600, context_chars=800) == budgets


@given(st.lists(st.integers(0, 3000), max_size=20), st.integers(20, 1000), st.integers(20, 5000))
def test_budgets_hold(lengths, note_chars, context_chars):
    budgets = note_budgets(lengths, note_chars=note_chars, context_chars=context_chars)
    assert sum(budgets) <= context_chars
    assert all(budget <= min(length, note_chars) for budget, length in zip(budgets, lengths, strict=True))
    if sum(min(length, note_chars) for length in lengths) <= context_chars:
        assert budgets == [min(length, note_chars) for length in lengths]


def test_titles_are_kept_before_contents_and_cuts_are_flagged():
    notes = [(7, "标题\n二", "内容" * 50), (3, None, None), (9, "短", "够")]
    first, second, third = show_notes(notes, note_chars=20, context_chars=1000)
    assert (first.note_idx, first.title, len(first.title + first.content), first.trimmed) == (7, "标题 二", 20, True)
    assert (second.title, second.content, second.trimmed) == ("", "", False)
    assert (third.title, third.content, third.trimmed) == ("短", "够", False)
