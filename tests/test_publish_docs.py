"""`qilin-tasks publish-docs`: documents as a data set that the real `datasets` loads offline, whole or not at all."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.dqa_folder import dqa_row, write_dqa
from support.hub_server import HubServer
from support.upstream import fake_checkout, values_under

from qilin_tasks.cli import main
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.sources.sample import write_sample
from qilin_tasks.upstream.checkout import write_upstream
from qilin_tasks.upstream.documents import publish_documents, read_config
from qilin_tasks.upstream.hosted import HOSTED, hosted_names

HubAt = Callable[[str], Path]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All data sets but those of MTEB, of the sample; DQA's with notes of 300 characters."""
    folder = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        patch.setenv("REQA_DATA", "sample")
        publish_documents(folder, "qilin-dqa", metadata={"note_chars": 300})
        publish_documents(folder, "qilin-ranking", metadata={})
        publish_documents(folder, "reqa-by-sa-4", configs=["xquad_zh", "squad"], metadata={})
    return folder


def front_matter(place: Path) -> dict[str, Any]:
    _, head, _ = (place / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return dict(yaml.safe_load(head))


def test_datasets_loads_each_config_from_the_folder(published: Path, tmp_path: Path) -> None:
    import datasets

    from qilin_tasks.dqa.documents import build_dqa
    from qilin_tasks.dqa.settings import DQASettings

    place = str(published / "qilin-dqa")
    loaded = datasets.load_dataset(place, "oracle", split="test", cache_dir=str(tmp_path)).to_list()
    settings = {
        "context": "oracle", "contexts": None, "top_k": 5, "note_chars": 300, "context_chars": 4000, "answers": "all",
        "bertscore": "off", "bertscore_model": "m", "bertscore_layer": 1, "bertscore_device": "cpu",
        "bertscore_batch_size": 1,
    }  # fmt: skip
    assert loaded == build_dqa(DQASettings.from_metadata(settings), spec="sample")
    assert datasets.get_dataset_config_names(place) == ["na", "bm25", "bert", "oracle"]


def test_one_config_for_what_is_the_same(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    assert sorted(path.name for path in (published / "qilin-ranking").iterdir() if path.is_dir()) == [
        "recommendation", "search",
    ]  # fmt: skip
    place = published / "reqa-by-sa-4" / "xquad_zh" / "test-00000-of-00001.parquet"
    assert "direction" not in pq.read_schema(place).names
    tasks = HOSTED["qilin-ranking"].configs["search"]
    monkeypatch.setenv("QILIN_DATA", "sample")
    assert read_config("search", tasks, metadata={}).differing == {"qilin_search_pointwise": 0}
    tight = read_config("search", tasks, metadata={"window": 4, "note_chars": 60, "context_chars": 80})
    assert tight.differing["qilin_search_pointwise"] > 0


def test_a_card_says_where_two_ways_of_asking_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    metadata = {"window": 4, "note_chars": 60, "context_chars": 80}
    place = publish_documents(tmp_path, "qilin-ranking", configs=["search"], metadata=metadata)
    found = re.search(
        r"`qilin_search_pointwise` of qilin-tasks shows (\d+) of the 19 documents",
        (place / "README.md").read_text("utf-8"),
    )
    assert found and int(found[1]) > 0


@pytest.mark.parametrize("name", ["qilin-dqa", "qilin-ranking", "reqa-by-sa-4"])
def test_the_front_matter_is_complete(name: str, published: Path) -> None:
    head = front_matter(published / name)
    for key in ("license", "license_name", "license_link", "language", "pretty_name", "task_categories", "tags"):
        assert head[key], key
    assert head["size_categories"] == ["n<1K"]
    # The sample has no source but this package, whose licence is its.
    assert (head["license"], head["source_datasets"]) == ("mit", ["original"])
    places = [path.parent.name for path in (published / name).glob("*/test-00000-of-00001.parquet")]
    assert sorted(config["config_name"] for config in head["configs"]) == sorted(places)


def test_the_card_tells_origin_fields_and_recipe(published: Path) -> None:
    text = (published / "qilin-dqa" / "README.md").read_text(encoding="utf-8")
    assert "| `sample` |" in text and "made up for tests" in text
    for field in ("doc_key", "query", "notes", "reference"):
        assert f"| `{field}` |" in text
    assert "| `bm25` | 30 | `qilin_dqa_bm25` |" in text and '"note_chars": 300' in text


def test_the_checksums_outlive_an_edit_of_the_card(published: Path, tmp_path: Path) -> None:
    place = shutil.copytree(published / "qilin-dqa", tmp_path / "copy")
    lines = [line.split("  ") for line in (place / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    found = {name: digest for digest, name in lines}
    assert found.keys() == {path.relative_to(place).as_posix() for path in place.rglob("*.parquet")}
    with (place / "README.md").open("a", encoding="utf-8") as file:
        file.write("\nA sentence that the hub's editor added.\n")
    assert all(hashlib.sha256((place / name).read_bytes()).hexdigest() == digest for name, digest in found.items())
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=place, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_licences_are_not_mixed() -> None:
    sources: dict[str, str] = {}
    for chosen in HOSTED.values():
        assert chosen.licence.link.startswith("https://") and chosen.licence.name
        for source in chosen.sources:
            assert sources.setdefault(source, chosen.licence.id) == chosen.licence.id
    assert HOSTED["qilin-dqa"].licence.consent
    configs = [config for chosen in HOSTED.values() for config in chosen.configs]
    assert len(configs) == len(set(configs))


def test_what_nobody_may_host_is_refused_with_whom_to_ask() -> None:
    assert hosted_names("qilin-dqa, reqa-mit,qilin-dqa") == ("qilin-dqa", "reqa-mit")
    with pytest.raises(SettingError, match=r"'mteb_msmarco'.*Microsoft"):
        hosted_names("mteb_msmarco")
    with pytest.raises(SettingError, match="choose from qilin-dqa"):
        hosted_names("qilin")


def test_rankings_that_were_never_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dqa_row(i, query=f"问题{i}", dqa_output=f"回答{i}", ref_note_idx_list=[0]) for i in range(3)]
    data = write_dqa(tmp_path / "data", rows, [("标题", "内容")], drop=["dpr_results"])
    monkeypatch.setenv("QILIN_DATA", str(data))
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"dpr_results.*qilin-tasks prepare"):
        publish_documents(out, "qilin-dqa", configs=["na", "bert"], metadata={})
    assert not out.exists()
    place = publish_documents(out, "qilin-dqa", configs=["na"], metadata={})
    text = (place / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\| `THUIR/Qilin` \| a local copy, fingerprints dqa [0-9a-f]{16}, notes [0-9a-f]{16} \|", text)
    assert "consent is needed of the authors of Qilin" in text
    head = front_matter(place)
    assert (head["license"], head["source_datasets"]) == ("apache-2.0", ["THUIR/Qilin"])


def test_a_data_set_that_is_there_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    theirs = tmp_path / "qilin-dqa" / "notes.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    assert main(["publish-docs", str(tmp_path)]) == 1
    assert "notes.txt" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["qilin-dqa", "notes.txt"]
    assert main(["publish-docs", str(tmp_path), "--replace"]) == 0
    assert not theirs.exists() and (theirs.parent / "SHA256SUMS").is_file()
    said = capsys.readouterr().out
    assert "Nothing was uploaded" in said and "hf upload OWNER/qilin-dqa" in said
    assert "without the consent of the authors of Qilin" in said
    assert [path.name for path in tmp_path.iterdir()] == ["qilin-dqa"]


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_metadata_that_is_no_object(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish-docs", str(tmp_path / "out"), "--metadata", text]) == 1
    assert "--metadata" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_commit_of_a_hub_source_is_recorded(tmp_path: Path, hub_at: HubAt, monkeypatch: pytest.MonkeyPatch) -> None:
    with HubServer("THUIR/Qilin", {"main": write_sample(tmp_path / "repository")}) as hub:
        hub_at(hub.url)
        monkeypatch.setenv("QILIN_DATA", "THUIR/Qilin")
        place = publish_documents(tmp_path / "out", "qilin-dqa", configs=["na"], metadata={})
    text = (place / "README.md").read_text(encoding="utf-8")
    assert f"| `THUIR/Qilin` | {hub.refs['main']} |" in text


@pytest.mark.slow
def test_the_tasks_load_the_revision_that_the_yaml_pins(published: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    with HubServer("someone/qilin-dqa", {"first": published / "qilin-dqa", "main": newer}) as hub:
        checkout = fake_checkout(tmp_path / "checkout")
        write_upstream(checkout, ["qilin"], dataset="someone", revision=hub.refs["first"])
        cache = str(tmp_path / "cache")
        found = values_under(
            None, checkout / "lm_eval" / "tasks", "qilin_dqa_na", "--limit", "3", cwd=tmp_path, HF_ENDPOINT=hub.url,
            HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1", HF_HOME=cache, HF_HUB_CACHE=f"{cache}/hub",
            HF_DATASETS_CACHE=f"{cache}/datasets", no_proxy="127.0.0.1",
        )  # fmt: skip
    assert len(found["samples"]["qilin_dqa_na"]) == 3
    assert any(path.startswith("na/test-") for path in hub.downloads())
