"""`qilin-tasks export`: results in the formats of Every Eval Ever, Hugging Face and Inspect."""

from __future__ import annotations

import argparse
from pathlib import Path

FORMATS = {
    "every-eval-ever": "one JSON a result and its samples, in the datastore's tree",
    "eval-results": "Hugging Face's .eval_results/*.yaml, a folder a model",
    "inspect": "a log a result, which `inspect view` opens",
}
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    lines = "\n".join(f"  {name:16} {about}" for name, about in FORMATS.items())
    parser = subparsers.add_parser(
        "export",
        description=__doc__,
        epilog=f"formats:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of compare, run or lm_eval with --log_samples")
    parser.add_argument("--format", required=True, choices=FORMATS, help="whose format")
    parser.add_argument("--out", required=True, type=Path, help="folder for the files")
    parser.add_argument("--tasks", help="of the tasks only these, separated by commas")
    parser.add_argument("--metric", help="eval-results: another metric than the task's first")
    parser.add_argument("--dataset", help="eval-results: the benchmark's data set on the hub, OWNER/NAME")
    parser.add_argument("--organization", default="unknown", help="every-eval-ever: who evaluated")
    parser.add_argument(
        "--relationship", choices=RELATIONSHIPS, default="other", help="every-eval-ever: of the evaluator to the model"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the files, all or none, and print their names."""
    from qilin_tasks.errors import unknown
    from qilin_tasks.export import evaleval, hub, inspect_log
    from qilin_tasks.export.exported import exported
    from qilin_tasks.files import together
    from qilin_tasks.results.reader import find_results

    results = find_results(args.runs)
    if args.tasks is not None:
        names = [name.strip() for name in args.tasks.split(",") if name.strip()]
        tasks = sorted({result.task for result in results})
        for name in names:
            if name not in tasks:
                raise unknown("--tasks", name, tasks)
        results = [result for result in results if result.task in names]
    texts: dict[Path, str] = {}
    if args.format == "eval-results":
        for model in dict.fromkeys(result.model for result in results):
            mine = [exported(result) for result in results if result.model == model]
            folder = args.out / model.replace("/", "-") / ".eval_results"
            texts[folder / "qilin-tasks.yaml"] = hub.content(mine, metric=args.metric, dataset=args.dataset)
    for result in results if args.format != "eval-results" else ():
        one = exported(result)
        if args.format == "inspect":
            texts[args.out / inspect_log.file_name(one)] = inspect_log.content(one)
        else:
            made = evaleval.files(one, organization=args.organization, relationship=args.relationship)
            texts |= {args.out / path: text for path, text in made.items()}
    for path in texts:
        path.parent.mkdir(parents=True, exist_ok=True)
    with together() as files:
        for path, text in texts.items():
            files.write(path, text)
    for path in texts:
        print(path)
    return 0
