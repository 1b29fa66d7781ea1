"""The parts of benchmarks/gpu.sh, one process each: engine (DQA and the prefix cache), bertscore, dense; then merge.

    python benchmarks/gpu.py engine --model FOLDER --data FOLDER --queries 200 --out part.json

Each part writes one JSON object. All ratios are within one process, sides alternate, the best round of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

ROUNDS = 2
ANSWER_TOKENS = 64
TARGETS = {"dqa_share_of_raw_vllm": 0.95, "bertscore_over_forward": 1.15, "dense_share_of_encoder": 0.9}
PACKAGES = ("lm_eval", "vllm", "torch", "transformers", "sentence-transformers")


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of one call, the accelerator's queue emptied."""
    import torch

    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def best_of_rounds(sides: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The fastest of ROUNDS for each side; who goes first changes with the round."""
    best = dict.fromkeys(sides, float("inf"))
    for number in range(ROUNDS):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            best[name] = min(best[name], seconds(sides[name]))
    return best


def engine(args: argparse.Namespace) -> dict[str, Any]:
    """One engine for both: the harness against vLLM itself, then log-likelihoods with and without cached prefixes."""
    os.environ["QILIN_DATA"] = args.data
    from qilin_tasks.harness.vllm_prefix import PrefixCachedVLLM

    model = PrefixCachedVLLM(
        pretrained=args.model,
        dtype="auto" if args.gpu else "float32",
        max_model_len=args.max_model_len,
        enforce_eager=not args.gpu,
        batch_size="auto",
        enable_prefix_caching=True,
        block_size=16 if args.gpu else 32,
    )
    return {"dqa": _dqa(model, queries=args.queries), "prefix_cache": _prefix_cache(model, rows=args.rows)}


def _dqa(model: Any, *, queries: int) -> dict[str, Any]:
    """The four conditions through the harness (building, asking, scoring without BERTScore) and through vLLM alone."""
    import lm_eval
    from vllm import SamplingParams

    from qilin_tasks.harness.task_manager import expand, load, task_manager

    manager = task_manager(["qilin_dqa"], metadata={"bertscore": "off"})
    tasks = {name: load(name, manager) for name in expand(["qilin_dqa"], manager)}
    for task in tasks.values():
        task.config.generation_kwargs["max_gen_toks"] = ANSWER_TOKENS
        task.build_all_requests(limit=queries)
    prompts = [str(request.args[0]) for task in tasks.values() for request in task.instances]
    parameters = SamplingParams(temperature=0, max_tokens=ANSWER_TOKENS)
    generated: list[Any] = []

    def harness() -> None:
        model.model.reset_prefix_cache()
        lm_eval.evaluate(model, {"tasks": tasks, "groups": {}}, limit=queries, log_samples=True, bootstrap_iters=0)

    def raw() -> None:
        model.model.reset_prefix_cache()
        generated[:] = model.model.generate(prompts, parameters, use_tqdm=False)

    model.model.generate(prompts[:8], parameters, use_tqdm=False)
    best = best_of_rounds({"harness": harness, "raw": raw})
    return {
        "prompts": len(prompts),
        "prompt_tokens": sum(len(output.prompt_token_ids) for output in generated),
        "answer_tokens": sum(len(output.outputs[0].token_ids) for output in generated),
        "raw_seconds": round(best["raw"], 3),
        "harness_seconds": round(best["harness"], 3),
        "prompts_per_second": round(len(prompts) / best["harness"], 2),
        "dqa_share_of_raw_vllm": round(best["raw"] / best["harness"], 4),
    }


def _prefix_cache(model: Any, *, rows: int) -> dict[str, Any]:
    """Log-likelihoods of the pointwise search task: vLLM's own way, then with cached prefixes read."""
    from qilin_tasks.harness.task_manager import load, requests, task_manager

    name = "qilin_search_pointwise"
    asked = requests(load(name, task_manager([name], metadata={"rows": rows})))
    measured: dict[str, Any] = {"requests": len(asked)}
    values = {}
    for label, read in (("stock", False), ("cached", True)):
        model.model.reset_prefix_cache()
        model.read_prefix_cache, model.prompt_tokens, model.cached_tokens = read, 0, 0
        start = time.perf_counter()
        values[label] = [value for value, _ in model.loglikelihood(asked, disable_tqdm=True)]
        measured[f"{label}_seconds"] = round(time.perf_counter() - start, 3)
    measured["prompt_tokens"] = model.prompt_tokens
    measured["saved_share_of_tokens"] = round(model.cached_tokens / model.prompt_tokens, 4)
    measured["times_faster"] = round(measured["stock_seconds"] / measured["cached_seconds"], 3)
    pairs = zip(values["stock"], values["cached"], strict=True)
    measured["largest_difference"] = max(abs(stock - cached) for stock, cached in pairs)
    return measured


def _texts(data: str, count: int) -> list[str]:
    """Contents of notes, as many as there are up to `count`."""
    import pyarrow.parquet as pq

    texts: list[str] = []
    for path in sorted(Path(data, "notes").glob("*.parquet")):
        texts += [text for text in pq.read_table(path, columns=["note_content"])["note_content"].to_pylist() if text]
        if len(texts) >= count:
            break
    return texts[:count]


def bertscore(args: argparse.Namespace) -> dict[str, Any]:
    """All of BERTScore over its encoder's forward passes, and the accelerator's values against the CPU's."""
    from qilin_tasks.metrics.bertscore import BertScorer
    from qilin_tasks.metrics.bertscore_model import load_encoder

    device = "cuda" if args.gpu else "cpu"
    texts = [text[:300] for text in _texts(args.data, 2 * args.pairs)]
    half = len(texts) // 2
    hypotheses, references = texts[:half], texts[half : 2 * half]
    scorer = BertScorer(model=args.encoder, layer=args.layer, device=device)
    scorer.check()
    encoder = load_encoder(args.encoder, layer=args.layer, device=device)
    tokens = encoder.tokenize(list(dict.fromkeys([*hypotheses, *references])), max_tokens=None)
    ids = sorted((token.ids for token in tokens), key=lambda row: (len(row), row))
    batches = [ids[start : start + scorer.batch_size] for start in range(0, len(ids), scorer.batch_size)]

    def forward() -> None:
        for batch in batches:
            encoder.forward(batch)

    forward()
    best = best_of_rounds({"all": lambda: scorer.score(hypotheses, references), "forward": forward})
    few = slice(0, 64)
    on_cpu = BertScorer(model=args.encoder, layer=args.layer, device="cpu").score(hypotheses[few], references[few])
    on_device = scorer.score(hypotheses[few], references[few])
    return {
        "pairs": half,
        "device": device,
        "seconds": round(best["all"], 3),
        "pairs_per_second": round(half / best["all"], 1),
        "bertscore_over_forward": round(best["all"] / best["forward"], 3),
        "largest_difference_from_cpu": max(abs(a - b) for a, b in zip(on_cpu.f1, on_device.f1, strict=True)),
    }


def dense(args: argparse.Namespace) -> dict[str, Any]:
    """Texts a second of the retrieval pipeline's encoding, and of the encoder alone on the same chunks."""
    from qilin_tasks.retrieval.corpus import JsonLinesCorpus
    from qilin_tasks.retrieval.encoders import SentenceTransformersEncoder, devices
    from qilin_tasks.retrieval.vectors import CHUNK, encode_corpus

    texts = _texts(args.data, args.texts)
    encoder = SentenceTransformersEncoder(args.encoder, batch_size=128, max_length=256)
    encoder.encode(texts[:128])
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name) / "corpus.jsonl"
        lines = (json.dumps({"id": str(number), "contents": text}) for number, text in enumerate(texts))
        corpus.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

        def alone() -> None:
            for start in range(0, len(texts), CHUNK):
                encoder.encode(texts[start : start + CHUNK])

        def pipeline() -> None:
            # A folder of its own each time: vectors that are there are not encoded again.
            folder = Path(tempfile.mkdtemp(dir=name))
            encode_corpus(JsonLinesCorpus(corpus), encoder, folder, progress=False)

        best = best_of_rounds({"alone": alone, "pipeline": pipeline})
    return {
        "texts": len(texts),
        "devices": devices(),
        "texts_per_second": round(len(texts) / best["pipeline"], 1),
        "dense_share_of_encoder": round(best["alone"] / best["pipeline"], 3),
    }


def merge(args: argparse.Namespace) -> dict[str, Any]:
    """One object from the parts' files; a part without one failed, and the end of its log says how."""
    import torch

    report: dict[str, Any] = {
        "benchmark": "gpu",
        "device": torch.cuda.get_device_name() if args.gpu else "cpu",
        "quick": args.quick,
        "model": Path(args.model).name,
        "encoder": Path(args.encoder).name,
        "versions": {name: _version(name) for name in PACKAGES},
        "targets": TARGETS,
        "seconds": args.seconds,
    }
    for part in PARTS:
        path = args.parts / f"{part}.json"
        if path.is_file():
            report |= json.loads(path.read_text(encoding="utf-8"))
        else:
            log = args.parts / f"{part}.log"
            said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
            report[part] = {"failed": said[-5:] or ["not begun: the time was up"]}
    return report


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "engine": engine,
    "bertscore": lambda args: {"bertscore": bertscore(args)},
    "dense": lambda args: {"dense": dense(args)},
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "merge"])
    parser.add_argument("--model", default="", help="the language model's folder or hub id")
    parser.add_argument("--encoder", default="", help="the encoder's folder or hub id")
    parser.add_argument("--layer", type=int, default=8, help="BERTScore's layer (default: %(default)s)")
    parser.add_argument("--data", default="", help="a folder that benchmarks/synthetic_qilin.py wrote")
    parser.add_argument("--queries", type=int, default=400, help="DQA queries, times four conditions")
    parser.add_argument("--rows", type=int, default=100, help="search requests for the prefix cache")
    parser.add_argument("--pairs", type=int, default=5_000, help="pairs for BERTScore")
    parser.add_argument("--texts", type=int, default=20_000, help="texts to encode")
    parser.add_argument("--max-model-len", type=int, default=8192)
    parser.add_argument("--gpu", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--quick", action="store_true", help="only noted in the report")
    parser.add_argument("--parts", type=Path, help="merge: the folder of the parts' files")
    parser.add_argument("--seconds", type=int, help="merge: how long all took")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    report = merge(args) if args.part == "merge" else PARTS[args.part](args)
    args.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    status = main()
    # vLLM's engine keeps the interpreter from ending.
    os._exit(status)
