"""Tokens that vLLM computes for `reqa_<set>_likelihood`, with and without its prefix cache, in one run of one engine.

    python benchmarks/reqa_prefix_cache.py --model .models/SmolLM2-135M-Instruct --set xquad_en --questions 20

`stock`: `--model vllm`, which reads no cache for prompt log-probabilities and runs its output layer over all of them.
`tails`: the output layer over what is scored only. `cached`: the prefix cache read. `both`: `--model qilin-vllm`.
`reverse`: the same with `direction: sentence` (the question first, its candidates behind it). `hf`: stock `--model hf`
over the same requests, on `--hf-device`; its values differ by what another engine rounds. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=".models/SmolLM2-135M-Instruct", help="folder or hub id")
    parser.add_argument("--set", default="xquad_en")
    parser.add_argument("--data", default=None, help="REQA_DATA; default: the environment's, else hub")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--block-size", type=int, default=32, help="the CPU build takes multiples of 32; 16 on a GPU")
    parser.add_argument("--hf-device", default="cpu", help="where the hf backend runs (default %(default)s)")
    parser.add_argument("--hf-batch-size", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["REQA_DATA"] = arguments.data

    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    from qilin_tasks import tasks_folder
    from qilin_tasks.harness.vllm_prefix import PrefixCachedVLLM

    def requests(direction: str) -> list[Any]:
        name = f"reqa_{arguments.set}_likelihood"
        manager = TaskManager(
            include_path=str(tasks_folder() / "reqa"), include_defaults=False, metadata={"direction": direction}
        )
        task = manager.load([name])["tasks"][name]
        task.build_all_requests(limit=arguments.questions)
        return list(task.instances)

    lm = PrefixCachedVLLM(
        pretrained=arguments.model, dtype="float32", max_model_len=1024, enforce_eager=True, batch_size="auto",
        block_size=arguments.block_size, enable_prefix_caching=True,
    )  # fmt: skip
    report: dict[str, Any] = {"model": Path(arguments.model).name, "set": arguments.set, "block": arguments.block_size}
    values = {}
    able = lm.score_tails
    for label, direction, read, tails in (
        ("stock", "question", False, False),
        ("tails", "question", False, able),
        ("cached", "question", True, False),
        ("both", "question", True, able),
        ("reverse", "sentence", True, able),
    ):
        lm.model.reset_prefix_cache()
        lm._reads = None
        lm.read_prefix_cache, lm.score_tails, lm.prompt_tokens, lm.cached_tokens = read, tails, 0, 0
        asked = requests(direction)
        start = time.perf_counter()
        values[label] = [value for value, _ in lm.loglikelihood(asked, disable_tqdm=True)]
        seconds = time.perf_counter() - start
        report["requests"] = len(asked)
        report[label] = {
            "prompt_tokens": lm.prompt_tokens,
            "computed_tokens": lm.prompt_tokens - lm.cached_tokens,
            "seconds": round(seconds, 2),
        }
    asked = requests("question")
    hf = HFLM(
        pretrained=arguments.model, dtype="float32", device=arguments.hf_device, batch_size=arguments.hf_batch_size
    )
    start = time.perf_counter()
    values["hf"] = [value for value, _ in hf.loglikelihood(asked, disable_tqdm=True)]
    report["hf"] = {"seconds": round(time.perf_counter() - start, 2)}
    for label in ("tails", "cached", "both", "hf"):
        pairs = zip(values["stock"], values[label], strict=True)
        report[label]["largest_difference"] = max(abs(one - other) for one, other in pairs)
        report[label]["time_share"] = round(report[label]["seconds"] / report["stock"]["seconds"], 3)
    report["computed_share"] = round(report["cached"]["computed_tokens"] / report["stock"]["computed_tokens"], 3)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
