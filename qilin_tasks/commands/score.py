"""`qilin-tasks score`: a ranking that any system wrote, scored as the tasks are, with a result file for the report."""

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
Score a run (TREC `qid Q0 pid rank score name`, or CSV `qid,pid,score`; .gz too) by Qilin's official metrics.
qid is the row number of the config, pid the note_idx. Labels are the clicks of the rows in QILIN_DATA; with --qrels
they come from a file (`qid,pid`) and no data set is needed. Queries without a ranking are left out, as the official
code does.

  qilin-tasks score --config search_test --run dcn_v2.csv --qrels search.test.qrels.csv --name DCN-V2
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "score",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # The choices are checked in `run`, whose message is the same from Python.
    parser.add_argument(
        "--config", required=True, metavar="|".join(CONFIGS), help="what the run's query ids are rows of"
    )
    parser.add_argument("--run", dest="run_file", required=True, metavar="FILE", help="TREC run or qid,pid,score CSV")
    parser.add_argument("--qrels", metavar="FILE", help="qid,pid CSV or TREC qrels (default: clicks of QILIN_DATA)")
    parser.add_argument("--rows", type=int, metavar="N", help="only queries of the first N rows (the paper: 1000)")
    parser.add_argument("--name", help="the system's name in the report (default: the run's own name)")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the result file goes (results)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score, write the result file, print. Raises QilinTasksError for a file or a setting that isn't in order."""
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
