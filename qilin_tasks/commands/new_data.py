"""`qilin-tasks new-data`: a user's own questions as a folder that the tasks `custom_dqa_*` read."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from qilin_tasks.commands.prepare import prepare
from qilin_tasks.files import writing_folder
from qilin_tasks.own_data.folder import OwnData, check_target, write_own_data
from qilin_tasks.retrieval.pipeline import Settings
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.text.languages import LANGUAGES

EXAMPLE = """example:
  qilin-tasks new-data mine --from qa.jsonl --notes corpus.jsonl
  qilin-tasks run --tasks custom_dqa_na,custom_dqa_bm25 --model … --metadata path=mine

qa.jsonl (or .csv, .parquet): question, answers, and if you like notes, cited, id. corpus.jsonl: text, title, id.
Every faulty line is named, and the folder appears whole or not at all. docs/own-data.md has the columns.
"""
#: Notes that BM25 keeps for a question.
TOP_K = 100


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "new-data", description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to write")
    parser.add_argument(
        "--from",
        dest="questions",
        type=Path,
        required=True,
        metavar="FILE",
        help="questions: .jsonl, .csv, .parquet",
    )
    parser.add_argument("--notes", type=Path, metavar="FILE", help="the notes to retrieve from: .jsonl, .csv, .parquet")
    parser.add_argument(
        "--language", default="zh", choices=sorted(LANGUAGES), metavar="CODE", help="of the data (default %(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that this command wrote")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the folder and say what can be run on it."""
    check_target(args.folder, overwrite=args.overwrite)
    with writing_folder(args.folder) as place:
        made = write_own_data(place, args.questions, args.notes, language=args.language)
        if made.notes:
            prepare(
                open_qilin(str(place)),
                config="dqa",
                settings=Settings(retriever="bm25", k=TOP_K, language=args.language),
                out=place / "bm25.parquet",
                rows="all",
            )
    print(summary(args.folder, made))
    return 0


def summary(folder: Path, made: OwnData) -> str:
    """What the folder holds, and the commands for it."""
    tasks = ["na"]
    tasks += ["bm25"] if made.notes else []
    tasks += ["contexts"] if made.given else []
    tasks += ["oracle"] if made.cited else []
    metadata = shlex.quote(json.dumps({"path": str(folder)}, ensure_ascii=False))
    quoted = shlex.quote(str(folder))
    lines = [
        f"{folder}: {made.questions} questions, {made.references} references at most, {made.cited} with cited notes; "
        + f"{made.notes} notes",
        "run:  qilin-tasks run --tasks "
        + ",".join(f"custom_dqa_{name}" for name in tasks)
        + f" --model … --metadata {metadata}",
    ]
    if made.notes:
        lines.append(
            f"more: qilin-tasks prepare --config dqa --data {quoted} --retriever dense --out {quoted}/bert.parquet"
            "  (then custom_dqa_bert)"
        )
    if made.given > 5:
        lines.append(f"a question brings up to {made.given} notes; top_k (5) of them are shown: top_k={made.given}")
    return "\n".join(lines)
