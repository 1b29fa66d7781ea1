"""BERTScore before generation (what is missing stops early) and when memory runs out (it goes on)."""

from __future__ import annotations

import importlib.util
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hub_server import HubServer

from qilin_tasks.errors import DependencyError, SettingError
from qilin_tasks.metrics.bertscore import BertScorer
from qilin_tasks.metrics.bertscore_model import Encoder, load_encoder

TEXTS = ["防晒霜", "很好用", "公园散步", "小猫喜欢吃鱼", "今天天气很好", "北京清华大学"]


@pytest.fixture(scope="module")
def bert_zh(bert_chinese_cache: Path) -> str:
    (folder,) = (bert_chinese_cache / "models--bert-base-chinese" / "snapshots").iterdir()
    return str(folder)


@pytest.fixture
def broken(bert_zh: str, tmp_path: Path) -> Path:
    """A copy of the model to damage."""
    return Path(shutil.copytree(bert_zh, tmp_path / "broken"))


@pytest.mark.slow
def test_check_passes_and_loads_no_weights(bert_zh: str) -> None:
    load_encoder.cache_clear()
    BertScorer(model=bert_zh, layer=8).check()
    assert load_encoder.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 13}, "BERTScore layer 13: .* has layers 0 to 12"),
        ({"layer": -1}, "BERTScore layer -1: .* has layers 0 to 12"),
        ({"layer": "8"}, "BERTScore layer '8': .* has layers 0 to 12"),
        ({"device": "gpu"}, "BERTScore device 'gpu': not available here; choose from auto, cpu, cuda, cuda:N, mps"),
        ({"device": "meta"}, "BERTScore device 'meta': not available here"),
        ({"max_tokens": 513}, "BERTScore max_tokens 513: choose from 3 to 512"),
        ({"max_tokens": 2}, "BERTScore max_tokens 2: choose from 3 to 512"),
    ],
)
def test_bad_settings(bert_zh: str, settings: dict[str, Any], message: str) -> None:
    scorer = BertScorer(**{"model": bert_zh, "layer": 8, **settings})
    with pytest.raises(SettingError, match=message):
        scorer.check()


def test_cuda_without_cuda(bert_zh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingError, match="BERTScore device 'cuda:0': not available here"):
        BertScorer(model=bert_zh, layer=8, device="cuda:0").check()


@pytest.mark.parametrize("size", [0, -1, 1.5, "64", True])
def test_bad_batch_size(size: Any) -> None:
    with pytest.raises(SettingError, match=r"BERTScore batch size .*: choose a whole number from 1"):
        BertScorer(batch_size=size)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_missing_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(DependencyError, match=rf"needs the package {package}: pip install 'qilin-tasks\[bertscore\]'"):
        BertScorer().check()


@pytest.mark.parametrize("model", ["no-such-model-here", "nobody/nothing", "/no/such/folder", "not a name"])
def test_model_not_found(model: str) -> None:
    with pytest.raises(
        DependencyError, match=r"BERTScore model '.*': its configuration can't be loaded .*bertscore=off"
    ):
        BertScorer(model=model).check()


def test_folder_without_safetensors(broken: Path) -> None:
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    with pytest.raises(DependencyError, match=r"the folder holds no \*\.safetensors"):
        BertScorer(model=str(broken), layer=8).check()


def test_folder_without_tokenizer(broken: Path) -> None:
    for path in broken.glob("*token*"):
        path.unlink()
    with pytest.raises(DependencyError, match="its tokenizer can't be loaded"):
        BertScorer(model=str(broken), layer=8).check()


def test_truncated_weights(broken: Path) -> None:
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(DependencyError, match=r"its weights \(model.safetensors\) can't be loaded"):
        BertScorer(model=str(broken), layer=8).check()


def test_missing_weights_are_no_random_numbers(broken: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(broken / "model.safetensors")
    save_file(
        {name: value for name, value in weights.items() if "layer.1." not in name},
        broken / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(DependencyError, match=r"no fitting weights for encoder\.layer\.1"):
        BertScorer(model=str(broken), layer=8, device="cpu").score(["a"], ["b"])
    assert BertScorer(model=str(broken), layer=1, device="cpu").score(["a"], ["b"]).f1[0] < 1


class ModelHub(HubServer):
    """The stand-in hub with a model repository instead of a data set."""

    def __init__(self, repo_id: str, folder: Path) -> None:
        super().__init__(repo_id, {"main": folder})
        handler: Any = self._server.RequestHandlerClass
        path = handler._path

        def model_path(request: Any) -> str:
            asked = str(path(request)).replace("/api/models/", "/api/datasets/")
            return f"/datasets{asked}" if asked.startswith(f"/{repo_id}/") else asked

        handler._path = model_path


@pytest.fixture
def hub(bert_zh: str) -> Iterator[ModelHub]:
    with ModelHub("lab/bert-zh", Path(bert_zh)) as server:
        yield server


@pytest.fixture
def online(hub: ModelHub, hub_at: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> ModelHub:
    """The hub of this process; the API object that transformers shares keeps the address of its first use."""
    hub_at(hub.url)
    monkeypatch.setattr("transformers.utils.hub._hf_api", None, raising=False)
    return hub


def test_check_downloads_all_that_scoring_needs(
    online: ModelHub, monkeypatch: pytest.MonkeyPatch, bert_zh: str
) -> None:
    scorer = BertScorer(model="lab/bert-zh", layer=2, device="cpu")
    scorer.check()
    assert "model.safetensors" in online.downloads()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = len(online.requests)
    assert scorer.score(["防晒"], ["防晒霜"]) == BertScorer(model=bert_zh, layer=2, device="cpu").score(
        ["防晒"], ["防晒霜"]
    )
    assert len(online.requests) == before


@pytest.mark.slow
def test_hub_that_is_not_reachable(hub_at: Callable[[str], Path]) -> None:
    hub_at("http://127.0.0.1:9")
    with pytest.raises(DependencyError, match=r"BERTScore model 'lab/bert-zh': .*or give the folder's path"):
        BertScorer(model="lab/bert-zh", layer=2).check()


@pytest.mark.usefixtures("online")
def test_model_that_the_hub_does_not_have() -> None:
    with pytest.raises(DependencyError, match=r"BERTScore model 'lab/bert-zz': its configuration can't be loaded"):
        BertScorer(model="lab/bert-zz", layer=2).check()


def test_hub_without_safetensors(online: ModelHub, broken: Path) -> None:
    (broken / "model.safetensors").unlink()
    online.folders = dict.fromkeys(online.folders, broken)
    with pytest.raises(DependencyError, match=r"its weights \(model\.safetensors\) can't be loaded"):
        BertScorer(model="lab/bert-zh", layer=2).check()


class FullMemory:
    """A forward pass that runs out of memory for batches above a size, while the model is on its first device."""

    def __init__(self, encoder: Encoder, *, most: int, device: str) -> None:
        self.encoder = encoder
        self.most = most
        self.device = device
        self.forward = encoder.forward
        self.sizes: list[tuple[str, int]] = []

    def __call__(self, batch: Any) -> Any:
        import torch

        self.sizes.append((self.encoder.device, len(batch)))
        if self.encoder.device == self.device and len(batch) > self.most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return self.forward(batch)


@pytest.fixture
def on_a_gpu(bert_zh: str, monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """An encoder that believes to be on a GPU (its tensors stay where they are)."""
    load_encoder.cache_clear()
    encoder = load_encoder(bert_zh, layer=2, device="auto")
    monkeypatch.setattr(encoder, "device", "cpu:0")
    return encoder


def scores_when_full(encoder: Encoder, bert_zh: str, most: int, monkeypatch: pytest.MonkeyPatch) -> FullMemory:
    expected = BertScorer(model=bert_zh, layer=2, device="cpu").score(TEXTS, TEXTS[::-1])
    full = FullMemory(encoder, most=most, device="cpu:0")
    monkeypatch.setattr(encoder, "forward", full)
    scores = BertScorer(model=bert_zh, layer=2, device="auto", batch_size=4).score(TEXTS, TEXTS[::-1])
    for found, wanted in zip(scores[:3], expected[:3], strict=True):
        assert found == pytest.approx(wanted, abs=1e-6)
    return full


def test_smaller_batches_when_the_gpu_is_full(
    on_a_gpu: Encoder, bert_zh: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = scores_when_full(on_a_gpu, bert_zh, 1, monkeypatch)
    assert full.sizes == [("cpu:0", 4), ("cpu:0", 2), *[("cpu:0", 1)] * 6]
    assert "no memory left on cpu:0, batches of 2 from here" in caplog.text
    assert "going on on the CPU" not in caplog.text


def test_cpu_when_the_gpu_has_no_room_at_all(
    on_a_gpu: Encoder, bert_zh: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = scores_when_full(on_a_gpu, bert_zh, 0, monkeypatch)
    assert full.sizes == [("cpu:0", 4), ("cpu:0", 2), ("cpu:0", 1), ("cpu", 4), ("cpu", 2)]
    assert "no memory left on cpu:0, going on on the CPU" in caplog.text


def test_matching_on_the_cpu_when_the_gpu_is_full(
    bert_zh: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    expected = BertScorer(model=bert_zh, layer=2, device="cpu").score(TEXTS, TEXTS[::-1])
    from qilin_tasks.metrics import bertscore_matching

    best_matches = bertscore_matching._best_matches

    def full(longer: torch.Tensor, *rest: Any) -> Any:
        if isinstance(longer, OnGpu):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return best_matches(longer, *rest)

    class OnGpu:
        """A tensor that says it is on a GPU."""

        device = torch.device("cuda:0")

        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor
            self.shape = tensor.shape

        def cpu(self) -> torch.Tensor:
            return self.tensor

    match = bertscore_matching._match
    monkeypatch.setattr(bertscore_matching, "_best_matches", full)
    monkeypatch.setattr(
        bertscore_matching, "_match", lambda e, a, longer, b, shorter: match(e, a, OnGpu(longer), b, shorter)
    )
    with caplog.at_level(logging.WARNING):
        assert BertScorer(model=bert_zh, layer=2, device="cpu").score(TEXTS, TEXTS[::-1]) == expected
    assert "no memory left on cuda:0, matching on the CPU" in caplog.text


@pytest.mark.parametrize("device", ["cpu:0", "cpu"])
def test_other_errors_are_not_taken_for_a_full_gpu(
    on_a_gpu: Encoder, bert_zh: str, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    def fail(batch: Any) -> Any:
        raise RuntimeError("device-side assert triggered")

    monkeypatch.setattr(on_a_gpu, "device", device)
    monkeypatch.setattr(on_a_gpu, "forward", fail)
    with pytest.raises(RuntimeError, match="device-side assert"):
        BertScorer(model=bert_zh, layer=2, device="auto").score(["a"], ["b"])


def test_no_memory_on_the_cpu_either(on_a_gpu: Encoder, bert_zh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(batch: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(on_a_gpu, "forward", fail)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        BertScorer(model=bert_zh, layer=2, device="auto").score(["a"], ["b"])
