"""What share of the prompt tokens of the pointwise tasks does vLLM's prefix cache save, and does it cost accuracy?

`stock`: `--model vllm`, for whose prompt log-probabilities vLLM reads no cache. `cached`: `--model qilin-vllm`, which
lets it read the beginning that all candidates of a request (query first) and both answers of a candidate share. The
tokens are vLLM's own counts; `largest_difference` is between the two runs' log-likelihoods. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

TASKS = ("qilin_search_pointwise", "qilin_recommendation_pointwise")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(Path(__file__).resolve().parents[1] / ".models" / "tiny-qwen2"))
    parser.add_argument("--data", default="sample", help="QILIN_DATA")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--task", nargs="*", default=TASKS, choices=TASKS)
    parser.add_argument("--max-model-len", type=int, default=8192)
    parser.add_argument(
        "--block-size", type=int, default=32, help="tokens a cache block: 32 is the least on a CPU, 16 on a GPU"
    )
    args = parser.parse_args()
    os.environ["QILIN_DATA"] = args.data

    from qilin_tasks.harness.task_manager import load, task_manager
    from qilin_tasks.harness.vllm_prefix import PrefixCachedVLLM

    model = PrefixCachedVLLM(
        pretrained=args.model,
        dtype="float32",
        max_model_len=args.max_model_len,
        enforce_eager=True,
        batch_size="auto",
        block_size=args.block_size,
        enable_prefix_caching=True,
    )
    report: dict[str, Any] = {"model": Path(args.model).name, "data": args.data, "block": args.block_size}
    for name in args.task:
        task = load(name, task_manager({"rows": args.rows}))
        task.build_all_requests()
        measured: dict[str, Any] = {"documents": len(task.eval_docs), "requests": len(task.instances)}
        values = {}
        for label, read in (("stock", False), ("cached", True)):
            model.model.reset_prefix_cache()
            model.read_prefix_cache, model.prompt_tokens, model.cached_tokens = read, 0, 0
            start = time.perf_counter()
            values[label] = [value for value, _ in model.loglikelihood(task.instances, disable_tqdm=True)]
            measured[label] = {
                "prompt_tokens": model.prompt_tokens,
                "saved_share": round(model.cached_tokens / model.prompt_tokens, 4),
                "seconds": round(time.perf_counter() - start, 2),
            }
        pairs = zip(values["stock"], values["cached"], strict=True)
        measured["largest_difference"] = max(abs(stock - cached) for stock, cached in pairs)
        report[name] = measured
    print(json.dumps(report))


if __name__ == "__main__":
    main()
