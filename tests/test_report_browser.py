"""The report's page in Debian's headless Chromium: sorting, filtering, opening samples, a hostile output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import browser as chrome
from support.axe import MISSING as NO_AXE
from support.axe import axe_core
from support.browser import Browser, chromium
from support.report_runs import DOCUMENTS, HOSTILE, make

from qilin_tasks.report.build import build

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (chrome.CHROMIUM and chrome.DRIVER), reason=chrome.MISSING),
]
TITLE = "Vergleich <b>1</b>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    build([make(folder / "runs")], folder / "out", title=TITLE, resamples=200, seed=1)
    return (folder / "out" / "index.html").as_uri()


@pytest.fixture
def opened(running: Browser, page: str) -> Browser:
    running.get(page)
    running.wait_ready()
    return running


def column(browser: Browser, number: int) -> list[float]:
    return [float(text) for text in browser.texts(f"#rows td:nth-child({number})")]


def test_samples_sort_by_a_score_and_by_the_difference_of_two_models(opened: Browser) -> None:
    strong = opened.execute_script(
        "return [...document.querySelectorAll('#a option')].find((o) => o.textContent === 'strong').value"
    )
    opened.choose("a", strong)
    opened.sort_by("a")
    first = column(opened, 3)
    assert first == sorted(first)
    assert len(first) == 50
    opened.click("#down")
    assert column(opened, 3) == sorted(column(opened, 3), reverse=True)
    opened.click("#heads th:nth-child(5) button")
    differences = column(opened, 5)
    assert differences == sorted(differences, reverse=True)
    assert differences == pytest.approx(
        [a - b for a, b in zip(column(opened, 3), column(opened, 4), strict=True)], abs=1.1e-4
    )
    opened.click("#next")
    assert column(opened, 5)[0] <= differences[-1]
    assert f"of {DOCUMENTS} documents, page 2 of 3" in opened.text("#count")


def test_the_filter_takes_words_and_keys(opened: Browser) -> None:
    field = opened.find_element("id", "filter")
    field.send_keys("COOK rice")
    assert opened.text("#count").startswith(f"{DOCUMENTS // 4} of {DOCUMENTS}")
    assert all("how to cook rice" in text for text in opened.texts("#rows td:nth-child(2)"))
    field.clear()
    field.send_keys("<b>")
    assert opened.texts("#rows td:nth-child(2)")[0] == "<b>粗体</b>问题 2"
    field.clear()
    field.send_keys("nothing like it")
    assert opened.text("#count").startswith("0 of")


def test_a_hostile_output_is_text(opened: Browser) -> None:
    opened.find_element("id", "filter").send_keys("21")
    opened.click("#all")
    opened.click("#rows button")
    opened.wait("!document.getElementById('sample').hidden")
    assert HOSTILE in opened.texts("#sample pre")
    assert "A: <img src=x onerror=alert(1)>" in opened.texts("#sample h4")
    assert opened.title == TITLE
    assert opened.execute_script("return document.querySelectorAll('img, #sample script, #sample svg').length") == 0
    # A script that did get in would not run: the policy knows ours by its hash.
    opened.execute_script(
        "const s = document.createElement('div'); s.innerHTML = '<img src=x onerror=\"document.title=1\">';"
        "document.body.append(s); const t = document.createElement('script'); t.textContent = 'document.title=2';"
        "document.body.append(t);"
    )
    assert opened.title == TITLE


def test_a_sample_shows_query_context_reference_and_both_answers(opened: Browser) -> None:
    opened.choose(
        "task",
        opened.execute_script(
            "return [...document.querySelectorAll('#task option')].find((o) => o.textContent.endsWith('_bm25')).value"
        ),
    )
    opened.click("#rows button")
    opened.wait("!document.getElementById('sample').hidden")
    assert opened.text("#sample h3") == "Document 0 of qilin_dqa_bm25"
    assert len(opened.texts("#sample .passage")) == 3
    assert opened.texts("#sample pre")[:2] == ["北京三日游怎么安排 0", "参考答案0"]
    assert len(opened.texts(".answers section")) == 2
    assert opened.texts("#sample code")[0].startswith("dqa|ctx:bm25|note:600")
    opened.click("#sample button")
    assert opened.execute_script("return document.getElementById('sample').hidden") is True


def test_the_result_tables_sort(opened: Browser) -> None:
    opened.click("table.sortable th:nth-child(3) button")
    shown = opened.texts("table.sortable tbody tr td:nth-child(3)")[:10]
    values = [float(re.sub(r"[ ±].*", "", text)) for text in shown]
    assert values == sorted(values, reverse=True)
    assert (
        opened.execute_script("return document.querySelector('table.sortable th:nth-child(3)').ariaSort")
        == "descending"
    )


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("Markdown", r"| system | na | bm25 | bert | oracle |", r"| \<img src=x onerror=alert(1)> | 0."),
        ("LaTeX", r"system & na & bm25 & bert & oracle \\", r"$<$img src=x onerror=alert(1)$>$ & 0."),
        ("CSV", "system,na,bm25,bert,oracle", '<img src=x onerror=alert(1)>,"0.'),
    ],
)
def test_tables_are_copied(opened: Browser, name: str, head: str, row: str) -> None:
    opened.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    opened.execute_script(
        "const bar = document.querySelector('table.sortable').closest('.scroll').nextElementSibling;"
        f"[...bar.querySelectorAll('button')].find((b) => b.textContent === '{name}').click()"
    )
    opened.wait(f"[...document.querySelectorAll('.copies button')].some((b) => b.textContent === '{name} ✓')")
    copied = opened.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    lines = copied.splitlines()
    assert head in lines
    assert any(line.startswith(row) for line in lines)
    assert any("GPT4o-mini (published)" in line for line in lines)
    assert any("lead (baseline)" in line for line in lines)


def test_files_beside_the_page_are_linked(opened: Browser, page: str) -> None:
    links = opened.execute_script("return [...document.querySelectorAll('a[download]')].map((a) => a.href)")
    assert len(links) == 4
    assert all(Path(link.removeprefix("file://")).is_file() for link in links)


def test_nothing_is_asked_of_the_network_and_nothing_goes_wrong(opened: Browser) -> None:
    loaded = opened.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert loaded == []
    assert [entry for entry in opened.get_log("browser") if "Content Security Policy" not in entry["message"]] == []


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(page: str, dark: bool) -> None:
    with chromium(dark=dark) as browser:
        browser.get(page)
        browser.wait_ready()

        def lightness(of: str) -> float:
            colour = browser.execute_script(f"return getComputedStyle(document.body).{of}")
            return sum(map(int, re.findall(r"\d+", colour)[:3])) / 765

        assert (lightness("backgroundColor") < 0.2) == dark
        assert abs(lightness("backgroundColor") - lightness("color")) > 0.7
        browser.click("#theme")
        assert (lightness("backgroundColor") < 0.2) != dark


def test_a_phone_shows_it_without_scrolling_sideways(page: str) -> None:
    with chromium(width=390, height=844) as browser:
        browser.get(page)
        browser.wait_ready()
        browser.click("#rows button")
        browser.wait("!document.getElementById('sample').hidden")
        widths = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1] == 390
        sizes = browser.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)")
        assert sizes >= 15


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (400, True)])
def test_axe_finds_nothing(page: str, width: int, dark: bool) -> None:
    program = axe_core()
    if program is None:
        pytest.skip(NO_AXE)
    with chromium(width=width, dark=dark) as browser:
        browser.get(f"{page}#task=qilin_dqa_bm25&mark=pair&open=0")
        browser.wait_ready()
        browser.wait("!document.getElementById('sample').hidden")
        browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        browser.execute_script(program)
        found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert {"color-contrast", "select-name", "button-name"} <= {
        rule["id"] for rule in found["passes"] + found["violations"]
    }
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found["violations"]] == []


def test_print_shows_board_tables_and_plots_on_white(page: str) -> None:
    with chromium(dark=True) as browser:
        browser.get(page)
        browser.wait_ready()
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        shown = (
            "return ['.standings', 'table.sortable', '.plots svg', '#method', '#browser', '.copies', '#theme', 'nav']"
            ".filter((s) => getComputedStyle(document.querySelector(s)).display !== 'none')"
        )
        assert browser.execute_script(shown) == [".standings", "table.sortable", ".plots svg", "#method"]
        colours = browser.execute_script(
            "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
        )
        assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]


def test_screenshots_are_not_blank(page: str, tmp_path: Path) -> None:
    from PIL import Image

    with chromium() as browser:
        browser.get(page)
        browser.wait_ready()
        browser.save_screenshot(str(tmp_path / "page.png"))
    with Image.open(tmp_path / "page.png") as image:
        colours = image.convert("RGB").getcolors(maxcolors=1 << 24)
    assert colours is not None
    assert len(colours) > 50
