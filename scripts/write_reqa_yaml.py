"""Write the task and group files of `lm_eval_tasks/reqa/`: one table here, only what differs in each file.

python scripts/write_reqa_yaml.py           # write them
python scripts/write_reqa_yaml.py --check   # exit code 1 where a file is not what would be written
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "lm_eval_tasks" / "reqa"
VERSION = "1.0"
# 1.1: doc_mrr counts every paragraph with the gold sentence's text (changes nothing in XQuAD).
RANKING_VERSION = "1.1"
# 1.1: the first annotation only, tokens joined as they touch in the page.
NQ_VERSION = "1.1"

SQUAD_SETS = ("squad", "nq", "iapp", "xquad_en", "xquad_zh", "xquad_th")
# The pools that MrRank's ranker learns from; SQuAD's is the ReQA paper's own table. In no group.
TRAIN_SETS = ("squad_train", "nq_train")
MTEB_SETS = ("mteb_nq", "mteb_hotpotqa", "mteb_fiqa", "mteb_msmarco")
# Whole corpora of millions of documents don't fit into memory as candidates: a seeded sample stands beside the gold.
LARGE = ("mteb_nq", "mteb_hotpotqa", "mteb_msmarco")
LARGE_LIMIT = 200_000
LANGUAGES = {"iapp": "th", "xquad_th": "th", "xquad_zh": "zh"}
# The bases name English models.
DENSE = dict.fromkeys(("th", "zh"), "sentence-transformers/paraphrase-multilingual-mpnet-base-v2")
BERTSCORE = {"th": ("bert-base-multilingual-cased", 9), "zh": ("bert-base-chinese", 8)}
CONTEXTS = ("na", "bm25", "dense", "oracle")
RANKING = ("mrr", "r@1", "r@5", "r@10", "doc_mrr", "mrr_repaired", "candidate_recall", "valid_rate")
READING = ("em", "f1", "rouge_l", "meteor", "bertscore_f1")


def task(name: str, base: str, settings: dict[str, object], *, version: str) -> str:
    lines = [f"include: {base}", f"task: {name}", "metadata:", f"  version: {version}"]
    return "\n".join([*lines, *(f"  {key}: {value}" for key, value in settings.items())]) + "\n"


def group(name: str, tasks: list[str], metrics: tuple[str, ...]) -> str:
    lines = [f"group: {name}", "task:", *(f"  - {member}" for member in tasks)]
    lines += ["# The mean over the tasks, each counting once.", "aggregate_metric_list:"]
    for metric in metrics:
        lines += [f"  - metric: {metric}", "    aggregation: mean", "    weight_by_size: false"]
    return "\n".join([*lines, "metadata:", f"  version: {VERSION}"]) + "\n"


def settings(name: str) -> dict[str, object]:
    found: dict[str, object] = {"set": name}
    if name in LARGE:
        found["corpus_limit"] = LARGE_LIMIT
    if name in LANGUAGES:
        found["dense_model"] = DENSE[LANGUAGES[name]]
    return found


def reader_settings(name: str, context: str) -> dict[str, object]:
    found = {**settings(name), "context": context}
    if name in LANGUAGES:
        model, layer = BERTSCORE[LANGUAGES[name]]
        found |= {"bertscore_model": model, "bertscore_layer": layer}
    return found


def files() -> dict[str, str]:
    """File names and contents."""
    written: dict[str, str] = {}
    for suffix, base in (("", "listwise"), ("_likelihood", "likelihood"), ("_generate", "generate")):
        for name in (*SQUAD_SETS, *MTEB_SETS):
            own = f"reqa_{name}{suffix}"
            written[f"{own}.yaml"] = task(
                own,
                f"_reqa_{base}_yaml",
                settings(name),
                version=VERSION if name.startswith("xquad") else RANKING_VERSION,
            )
        for title, members in ((f"reqa{suffix}", SQUAD_SETS), (f"reqa_mteb{suffix}", MTEB_SETS)):
            written[f"{title}.yaml"] = group(title, [f"reqa_{name}{suffix}" for name in members], RANKING)
    for name in TRAIN_SETS:
        written[f"reqa_{name}.yaml"] = task(
            f"reqa_{name}", "_reqa_listwise_yaml", settings(name), version=RANKING_VERSION
        )
    for name in SQUAD_SETS:
        readers = []
        for context in CONTEXTS:
            own = f"reqa_{name}_reader_{context}"
            written[f"{own}.yaml"] = task(
                own,
                "_reqa_reader_yaml",
                reader_settings(name, context),
                version=NQ_VERSION if name == "nq" else VERSION,
            )
            readers.append(own)
        written[f"reqa_{name}_reader.yaml"] = group(f"reqa_{name}_reader", readers, READING)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    arguments = parser.parse_args()
    wanted = files()
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if arguments.check:
        for name in stale:
            print(f"{FOLDER / name}: not what scripts/write_reqa_yaml.py writes", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    print(f"{len(wanted)} files, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
