"""`qilin-tasks publish-docs`: documents as a data set that the real `datasets` loads offline, whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml
from support.dqa_folder import dqa_row, write_dqa

from qilin_tasks.cli import main
from qilin_tasks.errors import DataError
from qilin_tasks.upstream.documents import publish_documents, read_documents

DQA = ["qilin_dqa_na", "qilin_dqa_bm25", "qilin_dqa_oracle"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QILIN_DATA", "sample")
        return publish_documents(tmp_path_factory.mktemp("out"), "qilin", tasks=DQA, metadata={"note_chars": 300})


def test_datasets_loads_each_config_from_the_folder(published: Path, tmp_path: Path) -> None:
    import datasets

    from qilin_tasks.dqa.documents import build_dqa
    from qilin_tasks.settings import DQASettings

    loaded = datasets.load_dataset(str(published), "qilin_dqa_oracle", split="test", cache_dir=str(tmp_path)).to_list()
    settings = {
        "context": "oracle", "contexts": None, "top_k": 5, "note_chars": 300, "context_chars": 4000, "answers": "all",
        "bertscore": "off", "bertscore_model": "m", "bertscore_layer": 1, "bertscore_device": "cpu",
        "bertscore_batch_size": 1,
    }  # fmt: skip
    assert loaded == build_dqa(DQASettings.from_metadata(settings), spec="sample")
    assert datasets.get_dataset_config_names(str(published)) == DQA


def test_the_card_tells_origin_fields_and_recipe(published: Path) -> None:
    text = (published / "README.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    configs = yaml.safe_load(head)["configs"]
    assert [config["config_name"] for config in configs] == DQA
    assert "`sample`" in body and "made up for tests" in body and "THUIR/Qilin" in body
    for field in ("doc_key", "query", "notes", "reference"):
        assert f"| `{field}` |" in body
    assert "| `qilin_dqa_bm25` | 30 |" in body
    assert '"note_chars": 300' in body and "dqa\\|ctx:bm25\\|k:5\\|note:300" in body
    assert "fingerprints of what was read: dqa `" in body


def test_the_checksums_are_those_of_every_file(published: Path) -> None:
    lines = [line.split("  ") for line in (published / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    found = {name: digest for digest, name in lines}
    files = {path.relative_to(published).as_posix() for path in published.rglob("*") if path.is_file()}
    assert found.keys() == files - {"SHA256SUMS"}
    assert all(hashlib.sha256((published / name).read_bytes()).hexdigest() == digest for name, digest in found.items())


def test_rankings_that_were_never_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [dqa_row(i, query=f"问题{i}", dqa_output=f"回答{i}", ref_note_idx_list=[0]) for i in range(3)]
    data = write_dqa(tmp_path / "data", rows, [("标题", "内容")], drop=["dpr_results"])
    monkeypatch.setenv("QILIN_DATA", str(data))
    out = tmp_path / "out"
    with pytest.raises(DataError, match=r"dpr_results.*qilin-tasks prepare"):
        publish_documents(out, "qilin", tasks=["qilin_dqa_na", "qilin_dqa_bert"], metadata={})
    assert not out.exists()
    assert len(read_documents(["qilin_dqa_na"], metadata={})[0].table) == 3


def test_a_data_set_that_is_there_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    theirs = tmp_path / "qilin-documents" / "notes.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    assert main(["publish-docs", str(tmp_path), "--tasks", "qilin"]) == 1
    assert "notes.txt" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["qilin-documents", "notes.txt"]
    assert main(["publish-docs", str(tmp_path), "--tasks", "qilin", "--replace"]) == 0
    assert not theirs.exists() and (theirs.parent / "SHA256SUMS").is_file()
    said = capsys.readouterr().out
    assert "Nothing was uploaded" in said and "hf upload OWNER/qilin-documents" in said
    assert [path.name for path in tmp_path.iterdir()] == ["qilin-documents"]


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_metadata_that_is_no_object(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish-docs", str(tmp_path / "out"), "--metadata", text]) == 1
    assert "--metadata" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
