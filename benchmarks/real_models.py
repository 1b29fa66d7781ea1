"""The real models of the results pages, as `compare` takes them, and the call that runs the project's commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from qilin_tasks.files import write_whole

REPO = Path(__file__).resolve().parents[1]
ENCODER = ".models/multilingual-e5-small"
#: float32, which every processor has. SmolLM2 needs about 1.7 tokens for a Chinese character.
VLLM = {"dtype": "float32", "max_model_len": 4096, "enforce_eager": True}


def language_model(name: str, *, backend: str = "vllm", until: list[str] | None = None) -> dict[str, Any]:
    """An entry of a models file; `until` for a base model, which has no other end."""
    generation = {"max_gen_toks": 64, **({"until": until} if until else {})}
    return {"backend": backend, "args": {"pretrained": f".models/{name}", **VLLM}, "generation": generation}


def write_models(path: Path, entries: dict[str, dict[str, Any]]) -> None:
    """A models file with these names and entries."""
    write_whole(path, yaml.safe_dump([{"name": name, **entry} for name, entry in entries.items()]))


def call(*arguments: str, **variables: str) -> None:
    """`qilin-tasks ARGUMENTS…`, its output on stderr; `variables` are added to the environment."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPO), os.environ.get("PYTHONPATH")])),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        "VLLM_NO_USAGE_STATS": "1",
        **variables,
    }
    subprocess.run(
        [sys.executable, "-m", "qilin_tasks.cli", *arguments], cwd=REPO, env=environment, stdout=sys.stderr, check=True
    )
