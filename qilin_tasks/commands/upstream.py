"""`qilin-tasks upstream`: our tasks as folders of a checkout of lm-evaluation-harness."""

from __future__ import annotations

import argparse
from pathlib import Path

EXTRA = 'qilin = ["bert-score", "jieba", "rapidfuzz"]'
DESCRIPTION = """\
Write lm_eval/tasks/<family>/ (YAML, README.md, utils.py) and its row of lm_eval/tasks/README.md into a checkout of
lm-evaluation-harness. The folders need neither this package nor the whole corpus: their YAML loads the documents that
`qilin-tasks publish-docs` writes, from the hub (--dataset OWNER) or from its folder (--dataset FOLDER).

  qilin-tasks upstream ../lm-evaluation-harness --tasks qilin --dataset my-name
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "upstream",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="DIR", help="the checkout")
    parser.add_argument("--tasks", default="qilin,reqa", metavar="FAMILIES", help="qilin, reqa (default: both)")
    parser.add_argument("--dataset", metavar="OWNER|FOLDER", help="whose data sets, or a folder of publish-docs")
    parser.add_argument("--replace", action="store_true", help="put ours in the place of a folder that differs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write, and print what is left to do; raises QilinTasksError with nothing written."""
    from qilin_tasks.upstream.checkout import OWNER, write_upstream
    from qilin_tasks.upstream.families import family, family_names

    names = family_names(args.tasks)
    dataset = args.dataset or OWNER
    for folder in write_upstream(Path(args.folder).expanduser(), names, dataset=dataset, replace=args.replace):
        print(f"wrote {folder}, and its row of {folder.parent / 'README.md'}")
    steps = []
    if not Path(dataset).expanduser().is_dir():
        sets = ", ".join(f"{dataset}/{family(name).documents}" for name in names)
        steps.append(f"upload {sets} (qilin-tasks publish-docs says how)")
    else:
        steps.append("the YAML names a local folder: write again with --dataset OWNER before you open a pull request")
    if "qilin" in names:
        steps.append(f"add the extra to the checkout's pyproject.toml, and lm_eval[qilin] to its `tasks`: {EXTRA}")
    steps.append(f"in {args.folder}: ruff format lm_eval/tasks; lm-eval validate --tasks …; pytest tests/test_tasks.py")
    print("\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)))
    return 0
