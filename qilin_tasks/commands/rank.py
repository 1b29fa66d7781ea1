"""`qilin-tasks rank`: a system ranks what users were shown; a run, and a result file for the report."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from qilin_tasks.commands.score_results import folder_name, write_results
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.ranking.runs import clicks, score_run
from qilin_tasks.ranking.settings import RANKING_CONFIGS
from qilin_tasks.retrieval.encoders import BACKENDS
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.runs import read_run
from qilin_tasks.systems.rank import rank
from qilin_tasks.systems.system import INPUTS, SystemSettings
from qilin_tasks.systems.table import SYSTEMS, make_system

DESCRIPTION = """\
Rank the notes that each user was shown, as the paper's Table 10 does, and score the ranking by its metrics.

  qilin-tasks rank --system bm25 --config search_test --out runs/
  qilin-tasks rank --system bert-cross --model FOLDER --config search_test --out runs/
  qilin-tasks rank --system file --run dcn_v2.csv --name DCN-V2 --config search_test --out runs/
  qilin-tasks report runs/ --out report/

A run that was stopped goes on where it was; a finished one is only scored again.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "rank", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # The choices are checked in `run` and in the settings, whose messages are the same from Python.
    parser.add_argument("--system", required=True, metavar="|".join(SYSTEMS), help="what ranks")
    parser.add_argument("--config", required=True, metavar="|".join(RANKING_CONFIGS), help="whose requests")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a folder of results, as for report")
    parser.add_argument("--data", help="sample, a folder, or a hub id (default: $QILIN_DATA, else THUIR/Qilin)")
    parser.add_argument(
        "--rows", type=int, default=1000, metavar="N", help="the first rows (default 1000, the official sample_num)"
    )
    parser.add_argument("--all-rows", action="store_true", help="all rows instead")
    parser.add_argument("--name", help="the system's name in the report (default: the system, and its model's name)")
    parser.add_argument("--model", help="bert-bi, bert-cross: a folder or a hub name; dcn-v2: a folder of `train`")
    parser.add_argument("--run", dest="run_file", type=Path, metavar="FILE", help="file: a TREC run or qid,pid,score")
    parser.add_argument("--max-length", type=int, help="tokens of a text (bert-bi 256) or a pair (bert-cross 512)")
    parser.add_argument("--batch-size", type=int, default=32, help="default %(default)s")
    parser.add_argument("--device", default="auto", help="auto (all GPUs, else the CPU) or one of torch's names")
    parser.add_argument(
        "--input",
        default="pair",
        metavar="|".join(INPUTS),
        help="bert-cross: query and note as two segments, or as the official code's one text (default %(default)s)",
    )
    parser.add_argument(
        "--backend", default="mean-pooling", metavar="|".join(BACKENDS), help="bert-bi (default %(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a run that another recipe made")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Rank, score, print. Raises QilinTasksError for what isn't in order, before anything is ranked."""
    if args.config not in RANKING_CONFIGS:
        raise unknown("--config", args.config, RANKING_CONFIGS)
    if args.rows < 1:
        raise SettingError(f"--rows {args.rows}: must be at least 1; --all-rows takes all")
    rows = None if args.all_rows else args.rows
    settings = SystemSettings(
        model=args.model,
        run_file=args.run_file,
        max_length=args.max_length,
        batch_size=args.batch_size,
        device=args.device,
        input=args.input,
        backend=args.backend,
    )
    source = open_qilin(args.data)
    source.check({args.config: ["query"]})
    system = make_system(args.system, replace(settings, source=source, config=args.config, rows=rows))
    name = args.name or _name(args.system, settings)
    path = args.out / folder_name(name) / f"{args.config}.run"
    recipe = rank(
        source,
        system,
        config=args.config,
        rows=rows,
        name=name,
        out=path,
        overwrite=args.overwrite,
        progress=not args.quiet,
    )
    ranked, clicked = read_run(path), clicks(source, args.config)
    scores = score_run(ranked, clicked)
    written = write_results(
        scores,
        ranked,
        clicked,
        config=args.config,
        name=name,
        labels=f"clicks of {source.name}",
        run_file=path,
        rows=rows,
        out=args.out,
        made={"system": args.system, **recipe["system"]},
    )
    print(f"{name} on {args.config}: {len(scores.query_ids)} requests")
    print("\n".join(f"  {measure:<14} {value:.4f}" for measure, value in scores.means().items()))
    print(f"run: {path}\nresult file: {written}")
    return 0


def _name(system: str, settings: SystemSettings) -> str:
    if settings.run_file is not None:
        return settings.run_file.name.split(".")[0]
    return f"{system} ({Path(settings.model).name})" if settings.model is not None else system
