"""Question answering over 798 real notes: 64 questions of ours, five kinds of context, real small models.

    python benchmarks/notes_dqa.py --shared ../shared
    python benchmarks/notes_dqa.py --shared ../shared --models lead --limit 8    # no model at all

The questions and their answers are this project's text (tests/data/notes_questions.jsonl); the notes, named there by id
only, are read from the shared data. `new-data` makes the folder, `prepare` ranks it (BM25, multilingual-e5-small, their
weighted sum), `compare` asks; what was asked is kept under --work, so the same call goes on. ROUGE-L with 95 %
intervals over questions, paired bootstrap between contexts; the share of cited notes among the five shown. Ends with
one JSON line.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from paired_rows import PairedRows
from real_models import ENCODER, REPO, call, language_model, write_models

from qilin_tasks.files import write_whole
from qilin_tasks.results.reader import find_results, iter_samples

QUESTIONS = REPO / "tests" / "data" / "notes_questions.jsonl"
TOP = 5
#: What a model of this size reads in minutes on two cores.
SETTINGS = {"note_chars": 300, "context_chars": 1200, "bertscore": "off"}
#: A base model is stopped at a blank line, as in the demo.
MODELS: dict[str, dict[str, Any]] = {
    "gemma-3-270m": language_model("gemma-3-270m", until=["\n\n"]),
    "lead": {"backend": "qilin-baseline", "args": {"strategy": "lead"}},
    "SmolLM2-135M-Instruct": language_model("SmolLM2-135M-Instruct"),
}
#: Context -> task, and the run whose first five it shows. The weighted sum is run in a comparison of its own, since a
#: comparison has one `contexts`.
CONTEXTS = {
    "none": ("custom_dqa_na", None),
    "BM25": ("custom_dqa_bm25", "bm25"),
    "E5": ("custom_dqa_bert", "bert"),
    "weighted sum (.5)": ("custom_dqa_contexts", "fused"),
    "cited": ("custom_dqa_oracle", None),
}
#: What is told apart: the first minus the second.
PAIRS = [("BM25", "none"), ("E5", "none"), ("weighted sum (.5)", "BM25"), ("cited", "BM25"), ("cited", "E5")]


def make_folder(work: Path, notes: Path, *, limit: int | None) -> Path:
    """The questions and notes as a folder that the tasks read, with the three runs beside them."""
    folder = work / "data"
    if not folder.exists():
        with notes.open(encoding="utf-8", newline="") as file:
            rows = [
                {"id": row["note_idx"], "title": row["note_title"], "text": row["note_content"]}
                for row in csv.DictReader(file)
            ]
        corpus, asked = work / "corpus.jsonl", work / "questions.jsonl"
        write_whole(corpus, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        lines = QUESTIONS.read_text(encoding="utf-8").splitlines(keepends=True)
        write_whole(asked, "".join(lines[:limit]))
        call("new-data", str(folder), "--from", str(asked), "--notes", str(corpus))
    common = ("--config", "dqa", "--data", str(folder), "--quiet")
    runs = {name: str(folder / f"{name}.parquet") for name in ("bm25", "bert", "fused")}
    # `prepare` goes on with what is there and leaves what is finished.
    dense = ("--retriever", "dense", "--model", ENCODER, "--backend", "sentence-transformers")
    call("prepare", *common, *dense, "--out", runs["bert"])
    both = ("--retriever", "weighted", "--weights", ".5", ".5", "--runs", runs["bm25"], runs["bert"])
    call("prepare", *common, *both, "--out", runs["fused"])
    return folder


def ask(work: Path, folder: Path, names: Sequence[str]) -> None:
    """Every model over every context."""
    models = work / "models.yaml"
    write_models(models, {name: MODELS[name] for name in names})
    for out, chosen, more in (
        ("runs", [context for context in CONTEXTS if CONTEXTS[context][1] != "fused"], {}),
        ("runs-fused", ["weighted sum (.5)"], {"contexts": str(folder / "fused.parquet")}),
    ):
        tasks = ",".join(CONTEXTS[context][0] for context in chosen)
        metadata = json.dumps({"path": str(folder), "top_k": TOP, **SETTINGS, **more})
        call("compare", str(models), "--tasks", tasks, "--metadata", metadata, "--out", str(work / out))


def read(work: Path) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """ROUGE-L by model and context, a value a question, in the questions' order."""
    context_of = {task: context for context, (task, _) in CONTEXTS.items()}
    values: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for result in find_results([work / "runs", work / "runs-fused"]):
        by_key = {str(sample.doc["doc_key"]): sample.scores["rouge_l"] for sample in iter_samples(result)}
        column = np.array([by_key[key] for key in sorted(by_key)])
        values.setdefault(result.model, {})[context_of[result.task]] = column
    return values


def found_share(folder: Path) -> dict[str, float]:
    """Of the notes that the answers cite, the share among the first five of each run."""
    rows = pq.read_table(folder / "dqa").to_pylist()
    cited = [set(row["ref_note_idx_list"]) for row in rows]
    shares = {}
    for context, (_, run) in CONTEXTS.items():
        if run is None:
            continue
        shown: dict[int, set[int]] = defaultdict(set)
        for row in pq.read_table(folder / f"{run}.parquet").to_pylist():
            if row["rank"] <= TOP:
                shown[row["row"]].add(row["note_idx"])
        hits = [len(wanted & shown[place]) / len(wanted) for place, wanted in enumerate(cited)]
        shares[context] = round(float(np.mean(hits)), 4)
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--work", type=Path, default=Path(".results/notes_dqa"), help="default: %(default)s")
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=list(MODELS))
    parser.add_argument("--limit", type=int, help="questions (default: all)")
    parser.add_argument("--resamples", type=int, default=10_000)
    args = parser.parse_args()
    work = args.work.resolve()
    if args.limit is not None:
        work = work.with_name(f"{work.name}-{args.limit}")
    work.mkdir(parents=True, exist_ok=True)
    folder = make_folder(work, args.shared / "data" / "qilin" / "notes.798.csv", limit=args.limit)
    ask(work, folder, args.models)
    values = read(work)
    rows, differences = [], []
    for model in args.models:
        paired = PairedRows({name: values[model][name] for name in CONTEXTS}, resamples=args.resamples)
        rows += [{"model": model, "context": name, **paired.mean(name, "rouge_l")} for name in paired.names]
        differences += [
            {"model": model, "first": first, "second": second, **paired.difference(first, second)}
            for first, second in PAIRS
        ]
    result = {
        "benchmark": "notes_dqa",
        "questions": len(next(iter(values.values()))["none"]),
        "notes": 798,
        "found": found_share(folder),
        "rows": rows,
        "differences": differences,
    }
    for row in [*rows, *differences]:
        print(json.dumps(row, ensure_ascii=False))
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
