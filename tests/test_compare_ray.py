"""`--ray local`: the (model, task) jobs on a local Ray of two workers, on CPUs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support.comparing import arguments, start
from support.openai_server import chat_server

from qilin_tasks.compare.ray_cluster import _check_gpus, gpus_of
from qilin_tasks.compare.specs import ModelSpec
from qilin_tasks.compare.state import Pair, Planned
from qilin_tasks.errors import SettingError
from qilin_tasks.results.reader import find_results, iter_samples


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=540)
    return process.returncode, said.decode()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray (pip install 'qilin-tasks[ray]')")
def test_two_workers_same_files_same_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QILIN_DATA", "sample")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    out = tmp_path / "runs"
    with chat_server() as server:
        models = (f"local-chat-completions:m,base_url={server.url},num_concurrent=2", "qilin-baseline:lead")
        command = arguments(out, *models, tasks="qilin_dqa_na", extra=("--ray", "local"))
        code, said = finish(start(command))
        assert code == 0, said
        asked = dict(server.asked)
        results = find_results([out])
        assert [(r.model, r.task) for r in results] == [("lead", "qilin_dqa_na"), ("m", "qilin_dqa_na")]
        assert len(asked) == results[0].n == len(list(iter_samples(results[1])))
        # The same folder goes on without Ray, and finds everything done.
        code, said = finish(start(arguments(out, *models, tasks="qilin_dqa_na")))
        assert code == 0, said
        assert dict(server.asked) == asked


def test_gpus_that_jobs_ask_for() -> None:
    assert gpus_of(ModelSpec("a", "vllm", {"pretrained": "m", "tensor_parallel_size": 4})) == 4
    assert gpus_of(ModelSpec("a", "local-chat-completions", {"model": "m"})) == 0
    assert gpus_of(ModelSpec("a", "vllm", {"pretrained": "m"}, gpus=0.5)) == 0.5
    task = Planned("t", 1, 1, None, (), 1, 1, 1)
    pair = Pair(ModelSpec("big", "vllm", {"pretrained": "m", "tensor_parallel_size": 8}), task, None, 0)
    with pytest.raises(SettingError, match="model 'big' asks for 8 GPUs, the Ray cluster has 2"):
        _check_gpus([pair], {"GPU": 2.0})


def test_without_ray_the_way_out_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from pathlib import Path\n"
        "from qilin_tasks.compare.ray_cluster import run_on_ray\n"
        "from qilin_tasks.compare.state import Options\n"
        "from qilin_tasks.errors import DependencyError\n"
        "try:\n"
        "    options = Options(tasks=(), out=Path('x'))\n"
        "    run_on_ray([], options, address='auto', limits=lambda spec: None, poll=lambda: None)\n"
        "except DependencyError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'qilin-tasks[ray]'" in ran.stdout
