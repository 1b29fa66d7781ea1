"""What each layer of BERTScore's encoder makes of edits whose harm is known, over real notes.

    python benchmarks/bertscore_layers.py --notes ../shared/data/qilin/notes.798.csv \\
        --labels ../shared/data/ragchecker/human_labeled_data.json

The edits are those of `qilin-tasks validate`; `unrelated` is another note in the note's place, the most that a score
can fall. A row holds BERTScore's F1 under each edit and `loss …`: how far it falls, as a share of the fall to an
unrelated note, so that layers with another baseline compare. 95 % intervals are clustered by note. With `--labels` it
holds Spearman's correlation of the difference between two answers' scores with people's preference, too, its interval
over resampled pairs. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

from qilin_tasks.metrics.answer_batch import BertScoreSettings
from qilin_tasks.results.stats import mean_interval
from qilin_tasks.validity.agreement import agreement
from qilin_tasks.validity.labels import Label, read_labels
from qilin_tasks.validity.ladder import ladder, ladder_texts
from qilin_tasks.validity.scores import scores

METRIC = "bertscore_f1"


def layer_row(layer: int, model: str, texts: list[str], labels: list[Label]) -> dict[str, Any]:
    """One layer's values: each edit's mean with its interval, its loss as a share of the unrelated one's, agreement."""
    settings = BertScoreSettings.from_metadata(
        {
            "bertscore": "on",
            "bertscore_model": model,
            "bertscore_layer": layer,
            "bertscore_device": "auto",
            "bertscore_batch_size": 32,
        }
    )
    score = scores(settings)[METRIC]
    intervals = {name: found for name, found in ladder(texts, {"f1": score})["f1"].items() if found is not None}
    intervals["unrelated"] = mean_interval(score([*texts[1:], texts[0]], texts))
    row: dict[str, Any] = {"layer": layer}
    for name, found in intervals.items():
        row |= {name: round(found.value, 4), f"{name} low": round(found.low, 4), f"{name} high": round(found.high, 4)}
        if name != "unrelated":
            row[f"loss {name}"] = round((1 - found.value) / (1 - intervals["unrelated"].value), 4)
    if labels:
        found = agreement(labels, {METRIC: score}, names=[METRIC], baseline="")[METRIC]
        row |= {
            "spearman": round(found.spearman, 4),
            "spearman low": round(found.low, 4),
            "spearman high": round(found.high, 4),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=Path, default=Path("../shared/data/qilin/notes.798.csv"))
    parser.add_argument("--model", default=".models/multilingual-e5-small")
    parser.add_argument("--layers", type=int, nargs="+", default=list(range(1, 13)))
    parser.add_argument("--limit", type=int, default=30, help="notes (default %(default)s)")
    parser.add_argument("--labels", type=Path, help="people's labels, as `qilin-tasks validate --labels` takes them")
    parser.add_argument("--rows", type=int, help="labels read (default: all)")
    args = parser.parse_args()
    began = time.perf_counter()
    with args.notes.open(encoding="utf-8", newline="") as file:
        texts = ladder_texts([row["note_content"] or "" for row in csv.DictReader(file)])[: args.limit]
    labels = read_labels(args.labels)[: args.rows] if args.labels else []
    rows = []
    for layer in args.layers:
        rows.append(layer_row(layer, args.model, texts, labels))
        print(json.dumps(rows[-1]), flush=True)
    seconds = round(time.perf_counter() - began, 1)
    result = {"benchmark": "bertscore_layers", "notes": len(texts), "labels": len(labels), "rows": rows}
    print(json.dumps({**result, "seconds": seconds}))


if __name__ == "__main__":
    main()
