"""The hub path, with the real client library in a process of its own against a server that stands in for the hub."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hub_server import HubServer

from qilin_tasks.errors import DataError
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.sample import write_sample

HubAt = Callable[[str], Path]
REPO_ID = "THUIR/Qilin"
SCRIPT = """
import json, sys
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.sources.qilin import open_qilin
steps = json.loads(sys.argv[1])
answer = {}
try:
    source = open_qilin()
    for step in steps:
        if step == "notes":
            answer["note"] = source.notes([3])[3].title
        else:
            answer[step] = len(source.rows(step, ["query"]))
    answer["name"] = source.name
    answer["revision"] = source.revision
except QilinTasksError as error:
    answer["error"] = type(error).__name__
    answer["message"] = str(error)
print("ANSWER" + json.dumps(answer))
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = write_sample(tmp_path / "repository")
    (folder / "README.md").write_text("# Qilin\n", encoding="utf-8")
    return folder


@pytest.fixture
def hub(repository: Path, tmp_path: Path) -> Iterator[HubServer]:
    old = tmp_path / "old"
    shutil.copytree(repository, old)
    shutil.rmtree(old / "search_test")
    with HubServer(REPO_ID, {"main": repository, "v0": old}) as server:
        yield server


def ask(endpoint: str, cache: Path, steps: list[str], **variables: str) -> dict[str, Any]:
    """What a fresh process gets, its client library set up by the environment alone."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "HF_HUB_CACHE": str(cache / "hub"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "QILIN_DATA": REPO_ID,
        "no_proxy": "127.0.0.1",
        **variables,
    }
    for name in ("HF_TOKEN", "QILIN_REVISION", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        if name not in variables:
            environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(steps)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.split("ANSWER")[1]))


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_only_the_configs_asked_for_are_fetched_and_the_commit_is_recorded(hub: HubServer, tmp_path: Path) -> None:
    answer = ask(hub.url, tmp_path / "cache", ["dqa"])
    assert answer == {"dqa": 37, "name": REPO_ID, "revision": hub.refs["main"]}
    assert hub.downloads() == ["dqa/train-00000-of-00001.parquet"]
    answer = ask(hub.url, tmp_path / "cache", ["dqa", "notes"])
    assert answer["note"] == "青岛带娃四天，这些坑我替你们踩了😭"
    assert sorted(hub.downloads()[1:]) == [f"notes/train-0000{n}-of-00002.parquet" for n in (0, 1)]


def test_the_second_run_needs_no_hub(hub: HubServer, tmp_path: Path) -> None:
    first = ask(hub.url, tmp_path / "cache", ["dqa"])
    calls = len(hub.requests)
    assert ask(hub.url, tmp_path / "cache", ["dqa"], HF_HUB_OFFLINE="1") == first
    assert len(hub.requests) == calls
    assert ask(closed_port(), tmp_path / "cache", ["dqa"]) == first


def test_offline_a_config_that_was_never_fetched_is_named(hub: HubServer, tmp_path: Path) -> None:
    ask(hub.url, tmp_path / "cache", ["dqa"])
    answer = ask(hub.url, tmp_path / "cache", ["search_test"], HF_HUB_OFFLINE="1")
    assert answer["error"] == "DataError"
    assert REPO_ID in answer["message"] and "search_test" in answer["message"]
    assert "QILIN_DATA=sample" in answer["message"]


def test_an_unreachable_hub_names_the_endpoint_and_the_ways_out(hub_at: HubAt) -> None:
    endpoint = closed_port()
    cache = hub_at(endpoint)
    with pytest.raises(DataError) as caught:
        open_qilin(REPO_ID).rows("dqa", ["query"])
    for part in (REPO_ID, endpoint, "QILIN_DATA=<folder>", "QILIN_DATA=sample", "HF_HUB_OFFLINE", str(cache)):
        assert part in str(caught.value)


def test_a_failing_hub_is_an_error_not_an_empty_data_set(hub: HubServer, hub_at: HubAt) -> None:
    hub_at(hub.url)
    hub.fail_with(403)
    with pytest.raises(DataError, match=hub.url):
        open_qilin(REPO_ID).rows("dqa", ["query"])
    assert hub.requests


def test_revisions_are_pinned_by_argument_or_variable(
    hub: HubServer, hub_at: HubAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_at(hub.url)
    source = open_qilin(REPO_ID, revision="v0")
    assert len(source.rows("dqa", ["query"])) == 37
    assert source.revision == hub.refs["v0"]
    assert source.has("dqa") and not source.has("search_test")
    with pytest.raises(DataError, match=f"search_test.*{hub.refs['v0']}"):
        source.rows("search_test", ["query"])
    monkeypatch.setenv("QILIN_REVISION", hub.refs["v0"])
    assert open_qilin(REPO_ID).revision == hub.refs["v0"]  # before any config was read


def test_an_unknown_revision_or_data_set_is_named(hub: HubServer, hub_at: HubAt) -> None:
    hub_at(hub.url)
    with pytest.raises(DataError, match=rf"{REPO_ID}@v9.*no such revision.*QILIN_REVISION"):
        open_qilin(REPO_ID, revision="v9").rows("dqa", ["query"])
    with pytest.raises(DataError, match=rf"THUIR/Qilim: {hub.url} has no such data set"):
        open_qilin("THUIR/Qilim").rows("dqa", ["query"])


def test_a_dropped_connection_is_resumed(hub: HubServer, hub_at: HubAt) -> None:
    hub_at(hub.url)
    hub.drop_next(1, after=2000)
    assert len(open_qilin(REPO_ID).rows("dqa", ["query"])) == 37
    assert hub.downloads() == ["dqa/train-00000-of-00001.parquet"] * 2


def test_a_connection_that_keeps_dropping_is_an_error_and_leaves_no_half_file(
    hub: HubServer, hub_at: HubAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    cache = hub_at(hub.url)
    hub.drop_next(1000, after=10)
    with pytest.raises(DataError, match=hub.url):
        open_qilin(REPO_ID).rows("dqa", ["query"])
    assert not [path for path in cache.rglob("*.parquet") if path.exists()]
    hub.drop_next(0, after=0)
    assert len(open_qilin(REPO_ID).rows("dqa", ["query"])) == 37


def test_a_moved_branch_is_followed_and_an_open_source_stays_at_its_commit(
    hub: HubServer, hub_at: HubAt, repository: Path, tmp_path: Path
) -> None:
    hub_at(hub.url)
    source = open_qilin(REPO_ID)
    source.rows("dqa", ["query"])
    old = hub.refs["main"]
    newer = tmp_path / "newer"
    shutil.copytree(repository, newer)
    hub.folders["f" * 40] = newer
    hub.refs["main"] = "f" * 40
    assert source.note_count() == 58 and source.revision == old
    assert open_qilin(REPO_ID).revision == "f" * 40
    assert open_qilin(REPO_ID, revision=old).revision == old


def test_the_datasets_library_reads_the_same_rows_from_the_same_server(
    hub: HubServer, hub_at: HubAt, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    hub_at(hub.url)
    table = datasets.load_dataset(REPO_ID, data_files="dqa/*.parquet", split="train", cache_dir=str(tmp_path / "ds"))
    ours = open_qilin(REPO_ID).rows("dqa", ["query", "dqa_output"])
    assert [(row["query"], row["dqa_output"]) for row in ours] == list(
        zip(table["query"], table["dqa_output"], strict=True)
    )
