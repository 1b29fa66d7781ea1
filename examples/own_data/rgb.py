"""RGB (Chen et al. 2024, arXiv 2309.01431), https://github.com/chen700564/RGB: data/zh.json and its kin to our columns.

python rgb.py zh.json --out converted [--noise-rate 0.6] [--passages 5]

The passages are those that their evalue.py shows: at a noise rate, in the order of its seed. Layouts zh, zh_refine, en,
en_refine (`positive` and `negative` are lists of texts) and zh_int, en_int (`positive` is a list of lists).
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lines import Notes, all_of, write

SEED = 2333


def passages(item: Mapping[str, Any], *, noise_rate: float, count: int) -> tuple[list[str], list[str]]:
    """What is shown, in order, and those of it that hold the answer; `count` is the number of passages."""
    generator = random.Random(SEED)  # noqa: S311
    if item["positive"] and isinstance(item["positive"][0], list):
        positive, noise = _of_groups(item, generator, noise_rate=noise_rate, count=count)
    else:
        noise = math.ceil(count * noise_rate)
        if noise_rate < 1:
            noise = min(noise, len(item["negative"]))
            if count - noise > len(item["positive"]):
                noise = count - len(item["positive"])
        positive = item["positive"][: count - noise]
    shown = [*positive, *item["negative"][: max(noise, 0)]]
    generator.shuffle(shown)
    return shown, positive


def _of_groups(
    item: Mapping[str, Any], generator: random.Random, *, noise_rate: float, count: int
) -> tuple[list[str], int]:
    """One passage of each group of evidence, then seconds, thirds, … up to the number wanted."""
    groups = [list(group) for group in item["positive"]]
    for group in groups:
        generator.shuffle(group)
    wanted = count - math.ceil(count * noise_rate)
    firsts = [group[0] for group in groups]
    others = [group[depth] for depth in range(1, max(map(len, groups))) for group in groups if len(group) > depth]
    positive = firsts + others[: max(wanted - len(firsts), 0)]
    return positive, count - len(positive)


def convert(lines: Iterator[str], notes: Notes, *, noise_rate: float, count: int) -> Iterator[dict[str, Any]]:
    """Their rows as ours; an answer that is a list needs all of its parts."""
    for line in lines:
        item = json.loads(line)
        shown, positive = passages(item, noise_rate=noise_rate, count=count)
        answer = item["answer"]
        ids = [notes.add(text) for text in shown]
        yield {
            "id": str(item["id"]),
            "question": item["query"],
            "answers": all_of(answer if isinstance(answer, list) else [answer], where=f"id {item['id']}"),
            "notes": ids,
            "cited": [key for key, text in zip(ids, shown, strict=True) if text in positive],
        }


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--noise-rate", type=float, default=0.0)
    parser.add_argument("--passages", type=int, default=5)
    args = parser.parse_args()
    notes = Notes()
    with args.file.open(encoding="utf-8") as lines:
        rows = list(convert(lines, notes, noise_rate=args.noise_rate, count=args.passages))
    write(args.out, rows, notes)


if __name__ == "__main__":
    main()
