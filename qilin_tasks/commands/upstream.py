"""`qilin-tasks upstream`: a task folder into a checkout of lm-evaluation-harness."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
Copy lm_eval/tasks/qilin/ (YAML, README.md, utils.py) into a checkout of lm-evaluation-harness, fill in where its
documents are, run the checkout's formatter and add the row to lm_eval/tasks/README.md. The documents are those that
`qilin-tasks publish-docs` writes, on the hub (--dataset OWNER --revision COMMIT) or in a folder (--dataset FOLDER).

  qilin-tasks upstream ../lm-evaluation-harness --dataset my-name --revision 1234567890123456789012345678901234567890
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "upstream",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="the checkout")
    parser.add_argument(
        "--tasks", default="qilin", metavar="FOLDERS", help="qilin (default), then qilin_ranking: one pull request each"
    )
    parser.add_argument("--dataset", required=True, metavar="OWNER|FOLDER", help="whose data set, or a local folder")
    parser.add_argument("--revision", metavar="COMMIT", help="the data set's commit, as `hf upload` prints it")
    parser.add_argument("--replace", action="store_true", help="put ours in the place of a folder that differs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write, and print what is left to do; raises QilinTasksError with nothing written."""
    from qilin_tasks.upstream.checkout import folder_names, write_upstream

    names = folder_names(args.tasks)
    written = write_upstream(
        Path(args.target).expanduser(),
        names,
        dataset=args.dataset,
        revision=args.revision,
        replace=args.replace,
    )
    for folder in written:
        print(f"wrote {folder}, and its row of {folder.parent / 'README.md'}")
    if args.revision is None:
        print(
            "The YAML names no commit of the data set: write again with --dataset OWNER --revision COMMIT before a PR."
        )
    print("The steps of the pull request are in docs/upstream.md.")
    return 0
