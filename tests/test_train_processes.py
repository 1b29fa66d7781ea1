"""One training by two processes: the weights of one process, and going on after a stop with another number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_dense import tiny_bert  # noqa: F401
from test_train import data, run, small, weights  # noqa: F401

from qilin_tasks.commands import train as command
from qilin_tasks.errors import SettingError
from qilin_tasks.systems.losses import TRAINED

# Batches of 3 and 2 requests with a note beside the clicked one: shares of unequal size too.
MORE = ["--recipe", "paper", "--batch-size", "3", "--epochs", "2", "--save-every", "1", "--learning-rate", "0.02"]


@pytest.fixture(scope="module")
def still_bert(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """A model without dropout, which processes draw each for itself."""
    folder = tmp_path_factory.mktemp("still") / "bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def two_processes(out: Path, system: str, model: Path) -> str:
    arguments = ["--system", system, "--model", str(model), "--out", str(out), "--device", "cpu", "--quiet"]
    sizes = ["--negatives", "1", "--max-length", "16"]
    started = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run(
        [*started, "-m", "qilin_tasks.cli", "train", *arguments, *sizes, *MORE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("system", sorted(TRAINED))
def test_two_processes_go_on_to_what_one_trains(
    data: Path,  # noqa: F811
    still_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
) -> None:
    """One process is stopped in the second of six steps; two go on from the first and end where one ends."""
    assert small(data / "one", system, still_bert, *MORE) == 0
    real, steps = TRAINED[system].loss, 0

    def stops(self: Any, *arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 2:
            raise KeyboardInterrupt
        return real(self, *arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TRAINED[system], "loss", stops)
        small(data / "two", system, still_bert, *MORE)
    printed = two_processes(data / "two", system, still_bert)
    assert printed.splitlines().count(str(data / "two")) == 1, "one of them speaks"
    one, two = (json.loads((data / name / "training.json").read_text("utf-8")) for name in ("one", "two"))
    assert (one["processes"], two["processes"], len(one["losses"])) == (1, 2, 6)
    assert two["losses"][0] == one["losses"][0], "gone on, not begun anew"
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-4)
    expected, found, start = weights(data / "one"), weights(data / "two"), weights(still_bert)
    assert found.keys() == expected.keys()
    far = {key: float((found[key] - tensor).abs().max()) for key, tensor in expected.items()}
    # A key's bias moves no attention: its gradient is rounding, which LAMB makes steps of.
    assert {key: by for key, by in far.items() if by > 1e-4 and not key.endswith("key.bias")} == {}
    moved = [
        key
        for key, tensor in expected.items()
        if not tensor.allclose(start.get(key, start.get(f"bert.{key}")), atol=1e-2)
    ]
    assert moved, "a training that moves nothing proves nothing"


def test_what_several_processes_can_not_share(
    data: Path,  # noqa: F811
    tiny_bert: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SettingError, match=r"--device 'cuda:0': with 2 processes choose auto .* or cpu"):
        small(data / "out", "bert-bi", tiny_bert, "--device", "cuda:0")
    with pytest.raises(SettingError, match="--system dcn-v2 trains in one process: start it without torchrun"):
        run(command, "train", "--system", "dcn-v2", "--out", str(data / "out"))
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(SettingError, match="process 1 has no GPU: there are 1; start 1 processes"):
        small(data / "out", "bert-bi", tiny_bert, "--device", "auto")
    assert not (data / "out").exists()
