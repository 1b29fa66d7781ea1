"""The page's samples in a real browser: from a number to the answers behind it, filters, search, marks, keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from support import browser as chrome
from support.browser import Browser
from support.runs import write_run

from qilin_tasks.report.build import build

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (chrome.CHROMIUM and chrome.DRIVER), reason=chrome.MISSING),
]
DOCUMENTS = 110
LONG = "w" * 20_000
REFERENCE = "北京三日游可以去故宫和长城"
ANSWERS = {"alpha": "北京三日游推荐去故宫和颐和园 as well", "beta": "北京三日游推荐去长城和颐和园 as bad"}


def scores(model: str, i: int) -> dict[str, float]:
    """Alpha wins the first 20 documents by .01 to .2, beta the next 10 by .5; the rest are ties."""
    gap = (i + 1) / 100 if i < 20 else -0.5 if i < 30 else 0.0
    return {
        "rouge_l": 0.5 + (gap if model == "alpha" else 0.0),
        "empty_rate": float(model == "beta" and i == 40),
        "refusal_rate": float(model == "alpha" and i in (41, 42)),
        "unfinished_reasoning_rate": float(i == 43),
        "notes_trimmed": 2.0 if i == 44 else 0.0,
    }


def answer(model: str, i: int) -> str:
    special = {(("alpha"), 50): LONG, ("beta", 51): "only beta says Zebra", ("beta", 40): " "}
    return special.get((model, i), ANSWERS[model])


def make(folder: Path) -> Path:
    for condition in ("na", "bm25"):
        notes = (
            []
            if condition == "na"
            else [{"note_idx": 1, "title": "t", "content": f"想去的话{ANSWERS['alpha'][:12]}吧"}]
        )
        docs = [
            {"doc_key": f"k{i}", "query": f"问题 {i}", "notes": notes, "reference": f"{REFERENCE}{i}"}
            for i in range(DOCUMENTS)
        ]
        for model in ("alpha", "beta", "gamma"):
            if (model, condition) == ("gamma", "bm25"):
                continue
            name = "alpha" if model == "gamma" else model
            write_run(
                folder / model / condition,
                model=model,
                task=f"qilin_dqa_{condition}",
                docs=docs,
                responses=[answer(name, i) for i in range(DOCUMENTS)],
                scores=[scores(name, i) for i in range(DOCUMENTS)],
                signature=f"dqa|ctx:{condition}|data:{condition}|n:{DOCUMENTS}|v:1.0",
                metadata={"context": condition},
                lower_is_better=["empty_rate", "refusal_rate"],
            )
    return folder


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("samples")
    build([make(folder / "runs")], folder / "out", title="samples", resamples=200, seed=1)
    return (folder / "out" / "index.html").as_uri()


@pytest.fixture
def opened(running: Browser, page: str) -> Browser:
    running.get("about:blank")
    running.get(page)
    running.wait_ready()
    return running


def view(browser: Browser) -> dict[str, str]:
    """The choices as the controls show them."""
    names = ("task", "a", "b", "metric", "only", "sort", "mark")
    return {name: browser.execute_script(f"return document.getElementById('{name}').value") for name in names}


def shown_sample(browser: Browser, key: str) -> None:
    """Wait until a document is open."""
    browser.wait(f"(document.querySelector('#sample h3') || {{}}).textContent?.startsWith('Document {key} ')")


def press(browser: Browser, key: str) -> None:
    browser.switch_to.active_element.send_keys(key)


def test_a_number_leads_to_its_samples(opened: Browser) -> None:
    row = "[...document.querySelectorAll('table.sortable tbody tr')].find((r) => r.cells[0].textContent === 'beta')"
    opened.execute_script(f"{row}.cells[2].querySelector('a').focus()")
    press(opened, Keys.ENTER)
    opened.wait("document.getElementById('task').value === 'qilin_dqa_bm25'")
    assert view(opened) | {"sort": ""} == {
        "task": "qilin_dqa_bm25", "a": "beta", "b": "alpha", "metric": "rouge_l", "only": "all", "sort": "", "mark": "",
    }  # fmt: skip
    computed = "[...document.querySelectorAll('table.sortable tbody tr:not(.published) td[data-value]')]"
    assert opened.execute_script(f"return {computed}.length") > 20
    # Shares of the gap are not of one document, p values neither; all else is a link.
    linked = opened.execute_script(
        "return [...document.querySelectorAll('main tbody tr:not(.published) small')].every((s) => "
        "s.closest('td').querySelector('a.samples') !== null)"
    )
    assert linked is True


def test_a_difference_leads_to_the_documents_where_the_pair_differs_most(opened: Browser) -> None:
    opened.execute_script(
        "const row = [...document.querySelectorAll('table.sortable tbody tr')].find((r) => "
        "r.cells[0].textContent === 'alpha − beta' && r.cells[1].textContent === 'bm25');"
        "row.closest('details').open = true; row.querySelector('a').click()"
    )
    opened.wait("document.getElementById('sort').value === 'gap'")
    assert view(opened)["task"] == "qilin_dqa_bm25"
    gaps = [abs(float(text)) for text in opened.texts("#rows td:nth-child(5)")]
    assert gaps[:10] == [0.5] * 10
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize(
    ("only", "keys"),
    [
        ("a", range(20)),
        ("b", range(20, 30)),
        ("tie", range(30, DOCUMENTS)),
        ("empty", [40]),
        ("refused", [41, 42]),
        ("unfinished", [43]),
        ("trimmed", [44]),
    ],
)
def test_filters(opened: Browser, only: str, keys: list[int]) -> None:
    opened.choose("only", only)
    assert opened.text("#count").startswith(f"{len(keys)} of {DOCUMENTS} ")
    assert opened.texts("#rows td:first-child") == [f"k{i}" for i in keys][:50]


def test_differences_above_a_limit_and_metrics_where_less_is_better(opened: Browser) -> None:
    opened.choose("only", "by")
    opened.execute_script(
        "const by = document.getElementById('by'); by.value = '0.155'; by.dispatchEvent(new Event('input'))"
    )
    assert opened.texts("#rows td:first-child") == [f"k{i}" for i in range(15, 30)]
    opened.choose("metric", "empty_rate")
    opened.choose("only", "a")
    assert opened.texts("#rows td:first-child") == ["k40"]
    # Nobody wins by a metric of which neither more nor less is better.
    opened.choose("metric", "notes_trimmed")
    for only in ("a", "b", "tie"):
        opened.choose("only", only)
        assert opened.text("#count").startswith("0 of ")


@pytest.mark.parametrize(
    ("place", "words", "keys"),
    [
        ("output", "ZEBRA", ["k51"]),
        ("reference", "长城77", ["k77"]),
        ("query", "问题 10", ["k10", *(f"k{i}" for i in range(100, 110))]),
        ("text", "长城77", ["k77"]),
        ("reference", "zebra", []),
        ("reference", "k12", ["k12"]),
    ],
)
def test_search(opened: Browser, place: str, words: str, keys: list[str]) -> None:
    opened.choose("in", place)
    opened.find_element("id", "filter").send_keys(words)
    opened.wait(f"document.getElementById('count').textContent.startsWith('{len(keys)} of ')")
    assert opened.texts("#rows td:first-child") == keys


def test_choices_stay_when_one_of_them_changes(opened: Browser) -> None:
    opened.choose("task", "qilin_dqa_na")
    opened.choose("a", "beta")
    opened.choose("b", "gamma")
    opened.choose("metric", "empty_rate")
    opened.choose("only", "tie")
    opened.choose("sort", "query")
    opened.click("#rows tr:nth-child(3) button")
    shown_sample(opened, opened.texts("#rows td:first-child")[2])
    key = opened.texts("#rows tr.open td:first-child")
    opened.choose("task", "qilin_dqa_bm25")
    opened.wait("document.querySelector('#sample h3').textContent.endsWith('_bm25')")
    # Gamma has no row there.
    assert view(opened) == {
        "task": "qilin_dqa_bm25", "a": "beta", "b": "alpha", "metric": "empty_rate", "only": "tie", "sort": "query",
        "mark": "",
    }  # fmt: skip
    assert opened.texts("#rows tr.open td:first-child") == key


def test_keys_go_through_the_list_and_the_focus_stays(opened: Browser) -> None:
    opened.choose("only", "b")
    opened.click("#rows tr:nth-child(2) button")
    shown_sample(opened, "k21")
    assert opened.execute_script("return document.activeElement.id") == "sample"
    press(opened, "j")
    shown_sample(opened, "k22")
    press(opened, Keys.ARROW_RIGHT)
    shown_sample(opened, "k23")
    press(opened, "k")
    shown_sample(opened, "k22")
    press(opened, Keys.ARROW_LEFT)
    shown_sample(opened, "k21")
    opened.execute_script("document.getElementById('after').focus()")
    press(opened, Keys.ENTER)
    shown_sample(opened, "k22")
    assert opened.execute_script("return document.activeElement.id") == "after"
    assert opened.text("#place") == "3 of 10 in the list below"
    press(opened, Keys.ESCAPE)
    opened.wait("document.getElementById('sample').hidden")
    assert opened.execute_script("return document.activeElement.textContent") == "问题 22"


def test_the_last_document_of_a_page_leads_to_the_next_page(opened: Browser) -> None:
    opened.click("#rows tr:nth-child(50) button")
    shown_sample(opened, "k49")
    press(opened, "j")
    shown_sample(opened, "k50")
    assert "page 2 of 3" in opened.text("#count")
    # In a field, letters are letters.
    field = opened.find_element("id", "filter")
    field.send_keys("j")
    assert opened.text("#sample h3").startswith("Document k50 ")


def test_a_long_text_folds(opened: Browser) -> None:
    opened.find_element("id", "filter").send_keys("k50")
    opened.click("#rows button")
    shown_sample(opened, "k50")
    assert max(map(len, opened.texts("#sample pre"))) < 2000
    opened.click(".answers pre + button")
    assert LONG in opened.texts("#sample pre")
    assert opened.execute_script("return document.activeElement.tagName") == "PRE"


def test_what_two_answers_do_not_share_is_marked(opened: Browser) -> None:
    opened.choose("mark", "pair")
    opened.click("#rows button")
    shown_sample(opened, "k0")
    assert opened.texts(".answers section:nth-child(1) mark") == ["故宫", "well"]
    assert opened.texts(".answers section:nth-child(2) mark") == ["长城", "bad"]
    # The texts stay whole.
    assert opened.texts(".answers pre") == list(ANSWERS.values())


def test_what_the_reference_lacks_and_what_is_copied(opened: Browser) -> None:
    opened.choose("task", "qilin_dqa_bm25")
    opened.choose("mark", "reference")
    opened.click("#rows button")
    shown_sample(opened, "k0")
    assert "推荐" in "".join(opened.texts(".answers section:nth-child(1) mark"))
    assert "可以" in "".join(opened.texts("#shown > pre mark"))
    opened.choose("mark", "context")
    opened.wait("document.querySelector('.answers mark').textContent.length === 12")
    assert opened.texts(".answers section:nth-child(1) mark") == [ANSWERS["alpha"][:12]]


def test_a_view_can_be_sent(opened: Browser, page: str) -> None:
    opened.choose("a", "beta")
    opened.choose("only", "a")
    opened.choose("mark", "pair")
    opened.click("#down")
    opened.click("#rows tr:nth-child(2) button")
    opened.wait("!document.getElementById('sample').hidden")
    before, sent, heading = view(opened), opened.current_url, opened.text("#sample h3")
    opened.get("about:blank")
    opened.get(sent)
    opened.wait_ready()
    assert view(opened) == before
    assert opened.text("#sample h3") == heading
    assert opened.text("#down") == "descending ▼"
    # Names that the page doesn't have give way.
    opened.get("about:blank")
    opened.get(f"{page}#task=nothing&a=nobody&b=none&metric=no&sort=m:no&open=k9999&only=what")
    opened.wait_ready()
    assert view(opened)["a"] == "alpha"
    assert opened.execute_script("return document.getElementById('sample').hidden") is True
    # A place of the page is no view, and looking at it changes nothing.
    opened.get("about:blank")
    opened.get(f"{page}#method")
    opened.wait_ready()
    assert opened.current_url.endswith("#method")
