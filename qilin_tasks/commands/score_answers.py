"""`qilin-tasks score --task … --answers …`: another system's answers, scored and written as a model's are."""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qilin_tasks.commands.score_results import SOURCE, folder_name
from qilin_tasks.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from qilin_tasks.harness.given import AnsweredTask


def run(args: argparse.Namespace) -> int:
    """Score the answers, or write the questions that want some. Raises QilinTasksError before anything is written."""
    from qilin_tasks.harness.evaluate import setup_logging
    from qilin_tasks.harness.given import open_task, score_answers
    from qilin_tasks.harness.metadata import parse_settings
    from qilin_tasks.own_data.system_answers import check_complete, missing_keys, read_answers

    if (args.answers is None) == (args.questions is None):
        raise SettingError("--task: give --answers FILE to score them, or --questions FILE to write what is asked")
    if args.limit is not None and args.limit <= 0:
        raise SettingError(f"--limit {args.limit:g}: must be above 0")
    path = Path(args.answers or args.questions)
    name = args.name or path.stem
    folder = Path(args.out) / folder_name(name)
    if args.answers is not None and (folder / args.task).exists() and not args.overwrite:
        raise SettingError(f"{folder / args.task} is there already: another --name or --out, or --overwrite")
    setup_logging("WARNING")
    # What the harness advises is of no use to one who asks no model.
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    task = open_task(
        args.task,
        metadata=parse_settings(args.metadata, flag="--metadata"),
        include_path=args.include_path,
        limit=args.limit,
    )
    if args.questions is not None:
        return _write_questions(task, path)
    answers = read_answers(path, task.all_documents, task=task.name)
    missing = missing_keys(task.documents, answers)
    if not args.allow_missing:
        check_complete(missing, documents=len(task.documents), path=path, task=task.name)
    answers |= dict.fromkeys(missing, "")
    if (folder / args.task).exists():
        shutil.rmtree(folder / args.task)
    done = score_answers(task, answers, name=name, source=SOURCE, file=path, out=folder)
    values = done.results["results"][task.name]
    summary = {
        "name": name,
        "task": task.name,
        "documents": len(task.documents),
        "missing": len(missing),
        "empty": sum(not answers[doc["doc_key"]].strip() for doc in task.documents),
        "metrics": {key.removesuffix(",none"): value for key, value in values.items() if _is_metric(key)},
        "signature": done.results["configs"][task.name]["metadata"]["signature"],
        "folder": str(folder / task.name),
    }
    print(json.dumps(summary, ensure_ascii=False) if args.json else _table(summary))
    return 0


def _is_metric(key: str) -> bool:
    return key.endswith(",none") and not key.endswith("_stderr,none")


def _write_questions(task: AnsweredTask, path: Path) -> int:
    """A line a document: its key, the question and the notes that the task shows; no reference."""
    from qilin_tasks.files import write_whole

    if path.suffix != ".jsonl":
        raise SettingError(f"--questions {path}: JSON lines are written; name it ….jsonl")
    write_whole(path, (f"{json.dumps(_question(doc), ensure_ascii=False)}\n" for doc in task.documents))
    print(f"{len(task.documents)} questions of {task.name}: {path}", file=sys.stderr)
    return 0


#: What a system may see of a document, in this order.
_SHOWN = ("doc_key", "question_id", "query", "question", "notes", "passages", "candidates")


def _question(doc: Mapping[str, Any]) -> dict[str, Any]:
    return {name: doc[name] for name in _SHOWN if name in doc}


def _table(summary: Mapping[str, Any]) -> str:
    said = f"{summary['documents']} documents, {summary['missing']} without an answer in the file"
    lines: Sequence[str] = [
        f"{summary['name']} on {summary['task']}: {said}, {summary['empty']} empty answers (these among them)",
        *(f"  {metric:<22} {value:.4f}" for metric, value in summary["metrics"].items()),
        f"results and samples: {summary['folder']}",
    ]
    return "\n".join(lines)
