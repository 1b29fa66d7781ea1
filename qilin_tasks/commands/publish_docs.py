"""`qilin-tasks publish-docs`: the ready documents as a data set; nothing is uploaded, the steps are printed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Write the documents of the tasks (query, contexts as shown, reference, ids) as parquet, one config a task, with a card
and SHA256SUMS, below DIR. They are made from QILIN_DATA and REQA_DATA as the tasks make them. Nothing is uploaded.

  QILIN_REVISION=... qilin-tasks publish-docs documents --tasks qilin --metadata '{"contexts": "bm25.parquet"}'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "publish-docs",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="DIR", help="where the data sets go; made where there is none")
    parser.add_argument("--tasks", default="qilin,reqa", metavar="FAMILIES", help="qilin, reqa (default: both)")
    parser.add_argument("--metadata", default="{}", metavar="JSON", help="settings over those of the YAML")
    parser.add_argument("--replace", action="store_true", help="write over a data set that is there")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write, and print how to upload; raises QilinTasksError with nothing written for the family that fails."""
    from qilin_tasks.upstream.documents import publish_documents
    from qilin_tasks.upstream.families import family_names

    metadata = settings(args.metadata)
    names = family_names(args.tasks)
    places = [
        publish_documents(Path(args.folder).expanduser(), name, metadata=metadata, replace=args.replace)
        for name in names
    ]
    for place in places:
        print(f"wrote {place}")
    print("Nothing was uploaded. Read each README.md (origin, licence), then, with your own name for OWNER:")
    for place in places:
        print(f"  hf upload OWNER/{place.name} {place} . --repo-type dataset")
    print(f"  qilin-tasks upstream CHECKOUT --tasks {args.tasks} --dataset OWNER")
    return 0


def settings(text: str) -> dict[str, Any]:
    """`--metadata` as a mapping; SettingError for anything else."""
    from qilin_tasks.errors import SettingError

    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingError(f"--metadata {text!r}: no JSON ({error}); for example '{{\"note_chars\": 300}}'") from error
    if not isinstance(found, dict):
        raise SettingError(f"--metadata {text!r}: must be a JSON object, for example '{{\"note_chars\": 300}}'")
    return found
