"""`qilin-tasks score`: rankings or answers of any system, scored as the tasks are, with files for the report."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qilin_tasks.errors import SettingError, unknown

if TYPE_CHECKING:
    from qilin_tasks.sources.runs import Qrels, Run

CONFIGS = ("search_test", "recommendation_test", "dqa")

DESCRIPTION = """\
Rankings: score a run (TREC `qid Q0 pid rank score name`, or CSV `qid,pid,score`; .gz too) by Qilin's official metrics.
qid is the row number of the config, pid the note_idx. Labels are the clicks of the rows in QILIN_DATA; with --qrels
they come from a file (`qid,pid`) and no data set is needed. Queries without a ranking are left out, as the official
code does.

  qilin-tasks score --config search_test --run dcn_v2.csv --qrels search.test.qrels.csv --name DCN-V2

Answers: score a file of `doc_key` and `answer` (.jsonl, .csv, .parquet, or .tsv without a header) by all metrics of a
task that asks for a text. --questions writes what is asked, without the references.

  qilin-tasks score --task qilin_dqa_bm25 --questions questions.jsonl
  qilin-tasks score --task qilin_dqa_bm25 --answers answers.jsonl --name my-rag --out runs/
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "score",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # The choices are checked in `run`, whose message is the same from Python.
    rankings = parser.add_argument_group("rankings")
    rankings.add_argument("--config", metavar="|".join(CONFIGS), help="what the run's query ids are rows of")
    rankings.add_argument("--run", dest="run_file", metavar="FILE", help="TREC run or qid,pid,score CSV")
    rankings.add_argument("--qrels", metavar="FILE", help="qid,pid CSV or TREC qrels (default: clicks of QILIN_DATA)")
    rankings.add_argument("--rows", type=int, metavar="N", help="only queries of the first N rows (the paper: 1000)")
    answers = parser.add_argument_group("answers")
    answers.add_argument("--task", metavar="TASK", help="the task whose documents were answered")
    answers.add_argument("--answers", metavar="FILE", help="doc_key and answer: .jsonl, .csv, .parquet or .tsv")
    answers.add_argument("--questions", metavar="FILE", help="write the task's questions (.jsonl) and end")
    answers.add_argument("--allow-missing", action="store_true", help="documents without an answer count as empty")
    answers.add_argument("--metadata", nargs="+", default=[], help="task settings: key=value … or a JSON object")
    answers.add_argument("--include_path", action="append", default=[], help="another folder of task YAML")
    answers.add_argument("--limit", type=float, help="the first N documents only")
    answers.add_argument("--overwrite", action="store_true", help="replace the result of this name")
    parser.add_argument("--name", help="the system's name in the report (default: the run's own, or the file's)")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the result file goes (results)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score, write the result file, print. Raises QilinTasksError for a file or a setting that isn't in order."""
    if _is_of_answers(args):
        from qilin_tasks.commands import score_answers

        return score_answers.run(args)
    from qilin_tasks.commands.score_results import write_results
    from qilin_tasks.ranking.runs import score_run
    from qilin_tasks.sources.runs import read_run

    if args.config not in CONFIGS:
        raise unknown("config", args.config, CONFIGS)
    if args.rows is not None and args.rows < 1:
        raise SettingError(f"--rows {args.rows}: must be at least 1; leave it out for all rows")
    submitted = read_run(args.run_file)
    if args.rows is not None:
        submitted = _first_rows(submitted, args.rows, path=args.run_file)
    qrels, source = _qrels(args)
    scores = score_run(submitted, qrels)
    name = args.name or submitted.name
    path = write_results(
        scores,
        submitted,
        qrels,
        config=args.config,
        name=name,
        labels=source,
        run_file=Path(args.run_file),
        rows=args.rows,
        out=Path(args.out),
    )
    summary = {
        "name": name,
        "config": args.config,
        "metrics": scores.means(),
        "queries": len(scores.query_ids),
        "queries_without_labels": scores.unjudged,
        "queries_without_ranking": scores.unranked,
        "labels": source,
        "file": str(path),
    }
    print(json.dumps(summary, ensure_ascii=False) if args.json else _table(summary))
    return 0


def _is_of_answers(args: argparse.Namespace) -> bool:
    """Whether --task and its flags are given; False for --config and --run. Raises SettingError for neither or both."""
    rankings = {"--config": args.config, "--run": args.run_file, "--qrels": args.qrels, "--rows": args.rows}
    answers = {"--task": args.task, "--answers": args.answers, "--questions": args.questions}
    of_rankings, of_answers = ([flag for flag in flags if flags[flag] is not None] for flags in (rankings, answers))
    if of_rankings and of_answers:
        raise SettingError(f"{of_answers[0]} is of answers and {of_rankings[0]} of rankings: give the flags of one")
    if of_answers and args.task is None:
        raise SettingError(f"{of_answers[0]}: --task is missing: the task whose documents they are of")
    if not of_answers and (args.config is None or args.run_file is None):
        raise SettingError("give --config and --run for a ranking, or --task and --answers for answers")
    return bool(of_answers)


def _first_rows(submitted: Run, rows: int, *, path: str) -> Run:
    from qilin_tasks.sources.runs import Run

    if submitted.query_ids.dtype.kind != "i":
        raise SettingError(
            f"--rows {rows}: the query ids of {path} are no row numbers (first: {submitted.query_ids[0]})"
        )
    kept = submitted.query_ids < rows
    if not kept.any():
        raise SettingError(f"--rows {rows}: no query of {path} is below it (the lowest is {submitted.query_ids.min()})")
    return Run(submitted.query_ids[kept], submitted.candidate_ids[kept], submitted.scores[kept], submitted.name)


def _qrels(args: argparse.Namespace) -> tuple[Qrels, str]:
    """The labels and where they are from."""
    from qilin_tasks.sources.runs import read_qrels

    if args.qrels is not None:
        return read_qrels(args.qrels), str(args.qrels)
    from qilin_tasks.ranking.runs import clicks
    from qilin_tasks.sources.qilin import open_qilin

    source = open_qilin()
    if not args.json:
        print(f"labels: clicks of {args.config} in {source.name}", file=sys.stderr)
    return clicks(source, args.config), f"clicks of {source.name}"


def _table(summary: dict[str, Any]) -> str:
    lines = [f"{summary['name']} on {summary['config']}: {summary['queries']} queries, labels: {summary['labels']}"]
    if summary["queries_without_labels"]:
        lines.append(f"left out: {summary['queries_without_labels']} queries of the run without a label")
    if summary["queries_without_ranking"]:
        lines.append(f"left out: {summary['queries_without_ranking']} labelled queries without a ranking")
    lines += [f"  {measure:<14} {value:.4f}" for measure, value in summary["metrics"].items()]
    return "\n".join([*lines, f"result file: {summary['file']}"])
