"""What keeping responses as they come costs: vLLM's one batch, the same listened to, and chunks of requests.

All ways answer as many prompts of the same lengths with one engine in one process; the figures are ratios of their
times. Needs vLLM (its CPU build where there is no GPU) and a model folder: python scripts/make_models.py tiny-qwen2.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

WAYS = ("stock", "streamed", "chunks")


def prompts(count: int, *, seed: int) -> list[str]:
    """Prompts of very different lengths, none twice."""
    rng = random.Random(seed)
    letters = "旅行美食推荐攻略路线价格时间地点方法城市酒店景点交通"
    return ["".join(rng.choices(letters, k=rng.randint(20, 300))) + str(i) for i in range(count)]


def requests(texts: list[str], *, longest: int) -> list[Any]:
    """Requests whose answers end at different lengths, as real ones do."""
    from lm_eval.api.instance import Instance

    rng = random.Random(len(texts))
    return [
        Instance(
            "generate_until",
            {},
            (text, {"until": [], "max_gen_toks": rng.randint(longest // 4, longest), "do_sample": False}),
            i,
        )
        for i, text in enumerate(texts)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--answer-tokens", type=int, default=48)
    parser.add_argument("--sequences", type=int, default=32, help="the engine's max_num_seqs")
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

    from lm_eval.api.registry import get_model

    from qilin_tasks.harness.response_store import ResponseStore
    from qilin_tasks.harness.stored import StoredLM
    from qilin_tasks.harness.vllm_stream import stream

    backend = get_model("vllm").create_from_arg_obj(
        {
            "pretrained": str(args.model),
            "dtype": "float32",
            "max_model_len": 1024,
            "enforce_eager": True,
            "max_num_seqs": args.sequences,
            "enable_prefix_caching": False,
        },
        {"batch_size": "auto"},
    )
    plain_generate, plain_step = backend._model_generate, backend.model.llm_engine.step
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    backend.generate_until(requests(prompts(16, seed=99), longest=8))
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(args.rounds):
            # Every way takes each place in turn: a machine that slows down hits none of them alone.
            for place in range(len(WAYS)):
                way = WAYS[(place + round_number) % len(WAYS)]
                asked = requests(prompts(args.requests, seed=10 * round_number + place), longest=args.answer_tokens)
                backend._model_generate, backend.model.llm_engine.step = plain_generate, plain_step
                model: Any = backend
                if way != "stock":
                    model = StoredLM(backend, chunk=args.chunk)
                    model.store = ResponseStore(Path(folder) / f"{way}{round_number}.sqlite", identity={"way": way})
                    if way == "streamed":
                        stream(model)
                start = time.perf_counter()
                model.generate_until(asked)
                seconds[way].append(time.perf_counter() - start)
                print(f"round {round_number}, {way}: {seconds[way][-1]:.2f} s", flush=True)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    print(
        json.dumps(
            {
                "benchmark": "response_store",
                "requests": args.requests,
                "sequences": args.sequences,
                "chunk": args.chunk,
                "seconds": {way: round(value, 2) for way, value in medians.items()},
                "streamed_to_stock": round(medians["streamed"] / medians["stock"], 3),
                "chunks_to_stock": round(medians["chunks"] / medians["stock"], 3),
            }
        ),
        flush=True,
    )
    os._exit(0)


if __name__ == "__main__":
    main()
