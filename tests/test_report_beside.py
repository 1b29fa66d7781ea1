"""A report whose texts lie beside the page: from a plain folder and from a static server, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support import browser as chrome
from support.browser import chromium
from support.report_runs import DOCUMENTS, HOSTILE, make

from qilin_tasks.report import build as building

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (chrome.CHROMIUM and chrome.DRIVER), reason=chrome.MISSING),
]


class Quiet(SimpleHTTPRequestHandler):
    """A static server that keeps to itself."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    with pytest.MonkeyPatch.context() as patch:
        # No page is large enough to be quick to make and too large for its texts.
        patch.setattr(building, "BUDGET", 0)
        building.build([make(folder / "runs")], folder / "out", title="beside", resamples=200, seed=1)
    return folder / "out"


@pytest.fixture(scope="module")
def server(out: Path) -> Iterator[str]:
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(out)))
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}/index.html"
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.mark.parametrize("served", [False, True])
def test_texts_load_when_they_are_asked_for(out: Path, server: str, served: bool) -> None:
    assert HOSTILE not in (out / "index.html").read_text(encoding="utf-8")
    with chromium() as browser:
        browser.get(f"{server if served else (out / 'index.html').as_uri()}#task=qilin_dqa_bm25&a=strong")
        browser.wait_ready()
        loaded = "performance.getEntriesByType('resource').map((e) => e.name.split('/').pop())"
        asked = browser.execute_script(f"return {loaded}")
        assert [name for name in asked if name.startswith("t")] == []
        browser.click("#rows tr:nth-child(8) button")
        browser.wait("!document.getElementById('sample').hidden")
        assert HOSTILE in browser.texts("#sample pre")
        assert browser.execute_script("return document.querySelectorAll('iframe').length") == 0
        # A search reads the others too.
        browser.choose("in", "reference")
        browser.find_element("id", "filter").send_keys(f"参考答案{DOCUMENTS - 1}")
        browser.wait("document.getElementById('count').textContent.startsWith('1 of ')")
        assert browser.title == "beside"
        errors = [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
        assert errors == []


def test_a_page_that_lost_its_texts_says_so(out: Path, tmp_path: Path) -> None:
    alone = tmp_path / "index.html"
    alone.write_bytes((out / "index.html").read_bytes())
    with chromium() as browser:
        browser.get(alone.as_uri())
        browser.wait_ready()
        browser.click("#rows button")
        browser.wait("!document.getElementById('sample').hidden")
        assert "no texts/t0.0.0.html beside this page" in browser.text("#shown")
        # The rest works on.
        browser.click("#close")
        browser.choose("only", "a")
        assert f"of {DOCUMENTS} documents" in browser.text("#count")
