"""vLLM's pooling runner as an encoder gives the vectors that sentence-transformers gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import numpy as np
from qilin_tasks.retrieval.encoders import load_encoder

texts = ["a cat sleeps", "", "the stock market fell " * 200]
if __name__ == "__main__":
    own = load_encoder(sys.argv[1], backend="sentence-transformers", batch_size=4, max_length=64).encode(texts)
    engine = load_encoder(sys.argv[1], backend="vllm", batch_size=4, max_length=64).encode(texts)
    print("difference", float(np.abs(own - engine).max()))
"""


@pytest.mark.vllm
@pytest.mark.slow
def test_vllm_encodes_as_sentence_transformers_does(minilm: Path, tmp_path: Path, repo: Path) -> None:
    pytest.importorskip("vllm")
    script = tmp_path / "encode.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "PYTHONPATH": str(repo), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(minilm)], capture_output=True, text=True, check=False, env=environment
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("difference")), None)
    assert line is not None, done.stdout[-2000:] + done.stderr[-4000:]
    assert float(line.split()[1]) < 0.02
