"""Write a synthetic copy of Qilin in the published layout, at full size by default, as a stream.

    python benchmarks/synthetic_qilin.py --out /tmp/qilin_full            # 1,983,938 notes
    python benchmarks/synthetic_qilin.py --out /tmp/qilin_small --notes 20000

Lengths follow the real notes (median 287 characters, a tenth up to 81, a tenth from 897); the text is words of a
Zipf-like vocabulary, each six bytes of UTF-8, so that whole shards are made by NumPy without a Python loop. The same
seed gives the same files. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from qilin_tasks.sources.layout import arrow_schemas
from qilin_tasks.sources.schema import ACTIONS, COUNTERS

NOTES = 1_983_938
VOCABULARY = 60_000
WORD_BYTES = 6  # two CJK characters, or an ASCII word padded to six
ASCII_WORDS = ("iPhone", " SPF50", " 100kg", "\nvlog ", " ootd ", " 2024 ", " DIY~ ", "  App ")
SIZES = {
    "dqa": 6_972,
    "search_train": 44_024,
    "search_test": 6_192,
    "recommendation_train": 83_437,
    "recommendation_test": 11_115,
    "user_feat": 15_482,
}
ANSWERED = 2_932 / 6_972


class Words:
    """A Zipf-like vocabulary and a table from which words are drawn in proportion to their frequency."""

    def __init__(self, rng: np.random.Generator) -> None:
        ranks = np.arange(1, 3_501)
        frequency = 1 / (ranks + 20.0)
        characters = rng.permutation(np.arange(0x4E00, 0x4E00 + 12_000))[:3_500]
        pairs = rng.choice(characters, size=(VOCABULARY, 2), p=frequency / frequency.sum())
        pairs[::20, 1] = ord("，")
        pairs[7::50, 1] = ord("！")
        text = "".join(map(chr, pairs.ravel().tolist())).encode()
        self.bytes = np.frombuffer(text, np.uint16).reshape(VOCABULARY, WORD_BYTES // 2).copy()
        ascii_words = "".join(ASCII_WORDS).encode()
        self.bytes[100 : 100 + len(ASCII_WORDS)] = np.frombuffer(ascii_words, np.uint16).reshape(-1, 3)
        weights = 1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
        bounds = np.round(np.cumsum(weights / weights.sum()) * (1 << 22)).astype(np.int64)
        self.table = np.searchsorted(bounds, np.arange(1 << 22), side="right").astype(np.uint16)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """`count` word numbers."""
        return self.table[rng.integers(0, 1 << 22, size=count, dtype=np.uint32)]

    def strings(self, words: np.ndarray, lengths: np.ndarray, *, null: np.ndarray | None = None) -> pa.Array:
        """A string array whose entries hold `lengths` words each, in order."""
        data = self.bytes[words]
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths * WORD_BYTES, out=offsets[1:])
        validity = None
        if null is not None:
            validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
        return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data), validity)


def content_words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Lengths in words: a split log-normal through the three quantiles of the real notes."""
    normal = rng.standard_normal(count)
    below, above = np.log(287 / 81) / 1.2816, np.log(897 / 287) / 1.2816
    characters = 287 * np.exp(normal * np.where(normal < 0, below, above))
    return np.maximum(1, np.minimum(characters, 1_500) / 2).astype(np.int64)


def digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Zero-padded decimal digits as bytes, one row a number."""
    powers = 10 ** np.arange(width - 1, -1, -1)
    return (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def image_paths(rng: np.random.Generator, numbers: np.ndarray, images: np.ndarray) -> pa.Array:
    """`image/part_114/1145271/5122187.jpg`, several a note."""
    owner = np.repeat(numbers, images)
    count = len(owner)

    def constant(text: str) -> np.ndarray:
        return np.tile(np.frombuffer(text.encode(), np.uint8), (count, 1))

    blocks = [
        constant("image/part_"),
        digits(owner // 10_000, 3),
        constant("/"),
        digits(owner, 7),
        constant("/"),
        digits(rng.integers(0, 10**7, count), 7),
        constant(".jpg"),
    ]
    data = np.concatenate(blocks, axis=1)
    offsets = np.arange(count + 1, dtype=np.int32) * data.shape[1]
    paths = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
    bounds = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(images, out=bounds[1:])
    return pa.ListArray.from_arrays(pa.array(bounds), paths)


def notes_batch(rng: np.random.Generator, words: Words, start: int, count: int) -> pa.Table:
    """Notes start .. start+count-1 with every column of the published layout."""
    numbers = np.arange(start, start + count)
    titles, contents = rng.integers(3, 11, count), content_words(rng, count)
    null = rng.random(count) < 0.01
    images = np.minimum(rng.geometric(0.22, count), 18)
    video = rng.random(count) < 0.25
    columns: dict[str, Any] = {
        "note_idx": numbers,
        "note_title": words.strings(words.draw(rng, int(titles.sum())), titles, null=null),
        "note_content": words.strings(words.draw(rng, int(contents.sum())), contents),
        "note_type": np.where(video, 2, 1),
        "image_path": image_paths(rng, numbers, images),
        "image_num": images,
        "video_duration": pa.array(rng.integers(5, 300, count).astype(float), mask=~video),
        "video_height": pa.array(np.full(count, 1280.0), mask=~video),
        "video_width": pa.array(np.full(count, 720.0), mask=~video),
        "content_length": contents * 2,
        "commercial_flag": (rng.random(count) < 0.1).astype(int),
        **{
            f"taxonomy{level}_id": pa.array(rng.integers(0, 30 * level, count).astype(str).astype(object))
            for level in (1, 2, 3)
        },
    }
    impressions = rng.geometric(0.002, count)
    for place, name in enumerate(COUNTERS):
        columns[name] = (impressions // (1 + place)).astype(float)
    schema = arrow_schemas()["notes"]
    arrays = [pa.array(columns[name]).cast(field.type) for name, field in zip(schema.names, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_notes(folder: Path, *, notes: int, shards: int, row_group_size: int, seed: int) -> None:
    """All shards of the notes, some 10,000 rows in memory at a time."""
    schema = arrow_schemas()["notes"]
    words = Words(np.random.default_rng(seed))
    folder.mkdir(parents=True)
    bounds = [notes * number // shards for number in range(shards + 1)]
    step = max(row_group_size, 20_000 // row_group_size * row_group_size)
    with tqdm(total=notes, unit="note", desc="notes") as progress:
        for shard in range(shards):
            path = folder / f"train-{shard:05d}-of-{shards:05d}.parquet"
            rng = np.random.default_rng([seed, shard])
            with pq.ParquetWriter(path, schema, use_dictionary=list(schema.names[3:])) as writer:
                for start in range(bounds[shard], bounds[shard + 1], step):
                    count = min(step, bounds[shard + 1] - start)
                    writer.write_table(notes_batch(rng, words, start, count), row_group_size=row_group_size)
                    progress.update(count)


def lists(values: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """A list array of the values, `lengths` in each entry."""
    bounds = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return pa.ListArray.from_arrays(pa.array(bounds), values if isinstance(values, pa.Array) else pa.array(values))


def run_lists(rng: np.random.Generator, rows: int, notes: int, depth: int) -> pa.Array:
    """Lists of `depth` [note_idx, score] pairs, distinct ids, scores falling."""
    depth = min(depth, notes)
    if notes < 20 * depth:
        ids = np.stack([rng.permutation(notes)[:depth] for _ in range(rows)])
    else:  # an arithmetic progression modulo the corpus keeps them distinct without a loop
        step = rng.integers(1, max(2, notes // depth), rows)
        ids = (rng.integers(0, notes, rows)[:, None] + np.arange(depth) * step[:, None]) % notes
    scores = -np.sort(-rng.gamma(4, 2, (rows, depth)), axis=1)
    flat = np.stack([ids.astype(float), scores], axis=-1).reshape(-1)
    pairs = lists(flat, np.full(rows * depth, 2))
    return lists(pairs, np.full(rows, depth))


def impression_lists(
    rng: np.random.Generator, rows: int, notes: int, *, longest: int, timestamp: str
) -> tuple[pa.Array, pa.Array]:
    """(impression structs, exposed ids) with up to `longest` notes and at least one click in a row."""
    lengths = np.minimum(3 + rng.geometric(1 / 14, rows), min(longest, notes))
    lengths[rng.integers(0, rows)] = min(longest, notes)
    count = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    place = np.arange(count) - np.repeat(starts, lengths)
    stride = np.maximum(1, rng.integers(1, max(2, notes // longest), rows))
    ids = (np.repeat(rng.integers(0, notes, rows), lengths) + place * np.repeat(stride, lengths)) % notes
    click = rng.random(count) < 0.15
    click[starts + rng.integers(0, lengths)] = True
    fields = {"note_idx": ids.astype(float), "position": place + 1.0}
    for name in ACTIONS:
        fields[name] = click.astype(float) if name == "click" else (click & (rng.random(count) < 0.05)).astype(float)
    fields["page_time"] = np.where(click, rng.gamma(2, 10, count), np.where(rng.random(count) < 0.5, -1.0, np.nan))
    fields[timestamp] = np.repeat(1.7e9 + np.arange(rows) * 60.0, lengths)
    structs = pa.StructArray.from_arrays([pa.array(field) for field in fields.values()], names=list(fields))
    return lists(structs, lengths), lists(ids, lengths)


def request_table(config: str, *, rows: int, notes: int, seed: int) -> pa.Table:
    """One of the five request configs, or user_feat."""
    rng = np.random.default_rng([seed, *config.encode()])
    words = Words(np.random.default_rng(seed))
    schema = arrow_schemas()[config]

    def texts(low: int, high: int, rows: int = rows) -> pa.Array:
        lengths = rng.integers(low, high, rows)
        return words.strings(words.draw(rng, int(lengths.sum())), lengths)

    search = config.startswith("search") or config == "dqa"
    details, exposed = impression_lists(
        rng, rows, notes, longest=185, timestamp="search_timestamp" if search else "request_timestamp"
    )
    recent = rng.integers(0, 20, rows)
    columns: dict[str, Any] = {
        "search_idx": np.arange(rows) * 3 + 100,
        "request_idx": np.arange(rows) * 3 + 100,
        "session_idx": np.arange(rows) // 2,
        "user_idx": rng.integers(0, SIZES["user_feat"], rows),
        "query": texts(2, 6) if search else texts(5, 80),
        "query_from_type": rng.integers(0, 6, rows),
        "recent_clicked_note_idxs": lists(rng.integers(0, notes, int(recent.sum())), recent),
        "search_result_details_with_idx": details,
        "rec_result_details_with_idx": details,
        "search_results": exposed,
        "rec_results": exposed,
    }
    if "bm25_results" in schema.names:
        columns["bm25_results"] = run_lists(rng, rows, notes, 100)
    if "dpr_results" in schema.names:
        columns["dpr_results"] = run_lists(rng, rows, notes, 100)
    if config == "dqa":
        answered = np.zeros(rows, bool)
        answered[rng.permutation(rows)[: round(rows * ANSWERED)]] = True
        references = np.where(answered, rng.integers(0, 7, rows), 0)
        columns["dqa_output"] = pa.array(np.where(answered, np.array(texts(50, 150).to_pylist()), "-1"))
        columns["ref_note_idx_list"] = lists(rng.integers(0, notes, int(references.sum())).astype(float), references)
        for name in ("is_like_clk", "is_onebox_trace_clk", "is_content_clk", "is_experience_clk"):
            columns[name] = pa.array((rng.random(rows) < 0.3).astype(float), mask=~answered)
    if config == "user_feat":
        columns = {name: rng.random(rows) for name in schema.names}
        columns["user_idx"] = np.arange(rows)
        for name in ("gender", "platform", "age", "location"):
            columns[name] = pa.array(rng.integers(0, 5, rows).astype(str).astype(object))
    arrays = [pa.array(columns[name]).cast(field.type) for name, field in zip(schema.names, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_all(
    out: Path, *, notes: int, shards: int, row_group_size: int, seed: int, scale: float, configs: list[str]
) -> None:
    """The whole data set; `out` appears when it is complete."""
    work = out.with_name(f".{out.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for config in configs:
        if config == "notes":
            write_notes(work / "notes", notes=notes, shards=shards, row_group_size=row_group_size, seed=seed)
            continue
        rows = max(1, round(SIZES[config] * scale))
        table = request_table(config, rows=rows, notes=notes, seed=seed)
        (work / config).mkdir()
        pq.write_table(table, work / config / "train-00000-of-00001.parquet", row_group_size=row_group_size)
    work.rename(out)


def main() -> None:
    """Parse, write, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist yet")
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--row-group-size", type=int, default=1000, help="rows; 1000 is what `datasets` writes")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the published rows in the other configs")
    parser.add_argument("--configs", nargs="+", default=["notes", *SIZES], choices=["notes", *SIZES])
    parser.add_argument("--seed", type=int, default=2025)
    args = parser.parse_args()
    if args.out.exists():
        parser.error(f"{args.out} exists: name a new folder")
    started = time.perf_counter()
    write_all(
        args.out,
        notes=args.notes,
        shards=args.shards,
        row_group_size=args.row_group_size,
        seed=args.seed,
        scale=args.scale,
        configs=args.configs,
    )
    size = sum(path.stat().st_size for path in args.out.rglob("*.parquet"))
    report = {
        "benchmark": "synthetic_qilin",
        "notes": args.notes,
        "seconds": round(time.perf_counter() - started, 1),
        "gigabytes": round(size / 1e9, 3),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "seed": args.seed,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
