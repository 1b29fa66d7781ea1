"""`qilin-tasks validate`: the validity card of the metrics, over your texts and your people's labels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from qilin_tasks.errors import DataError

DESCRIPTION = """\
What each metric makes of edits whose harm is known (claims negated, digits changed, text dropped, sentences shuffled),
and how it agrees with people. Texts are the shown answers of QILIN_DATA, or the column note_content of a CSV (--notes).
Labels (--labels) are one JSON object a line:

  {"pair": "q1", "reference": "…", "answer": "…", "other": "…", "label": 1}

The label says how much better `answer` is than `other` (without `other`: how good it is); rows of one pair (several
annotators) are one cluster of the intervals. RAGChecker's human_labeled_data.json is read as it is.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "validate",
        help="the validity card: what edits do to each metric, and how it agrees with people",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--notes", type=Path, metavar="FILE", help="CSV with a column note_content")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="people's labels")
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help="only this one (repeat; a+b: equal-weight sum)"
    )
    parser.add_argument("--bertscore-model", metavar="MODEL", help="also BERTScore, by this hub id or folder")
    parser.add_argument("--bertscore-layer", type=int, default=8, metavar="N", help="its layer (8)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the card. Raises QilinTasksError for a file or a name that isn't in order."""
    from qilin_tasks.metrics.answer_batch import BertScoreSettings
    from qilin_tasks.validity.card import card, markdown
    from qilin_tasks.validity.labels import read_labels

    settings = BertScoreSettings.from_metadata(
        {
            "bertscore": "on" if args.bertscore_model else "off",
            "bertscore_model": args.bertscore_model or "none",
            "bertscore_layer": args.bertscore_layer,
            "bertscore_device": "auto",
            "bertscore_batch_size": 64,
        }
    )
    labels = read_labels(args.labels) if args.labels else None
    made = card(_texts(args.notes), labels, names=args.metric, settings=settings)
    print(json.dumps(made, ensure_ascii=False) if args.json else markdown(made))
    return 0


def _texts(path: Path | None) -> list[str]:
    if path is None:
        from qilin_tasks.dqa.documents import answered_rows
        from qilin_tasks.sources.qilin import open_qilin

        return [str(row["dqa_output"]) for row in answered_rows(open_qilin(), answers="all")]
    import csv

    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"--notes {path}: {error}; a UTF-8 CSV with a column note_content is needed") from error
    if not rows or "note_content" not in rows[0]:
        raise DataError(f"--notes {path}: no column note_content (columns: {', '.join(rows[0]) if rows else 'none'})")
    return [row["note_content"] or "" for row in rows]
