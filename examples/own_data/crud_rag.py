"""CRUD-RAG (Lyu et al. 2024, arXiv 2401.17043), https://github.com/IAAR-Shanghai/CRUD_RAG: to our columns.

python crud_rag.py split_merged.json --docs 80000_docs --out converted [--part questanswer_1doc]

The news that a question was made from (news1, …) are its cited notes; `--docs` adds the news to retrieve from, a line a
note (theirs cuts them into chunks of 128 tokens first).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lines import Notes, write

PARTS_OF_THE_FILE = ("questanswer_1doc", "questanswer_2docs", "questanswer_3docs")
NEWS = ("news1", "news2", "news3")


def convert(data: Mapping[str, Any], notes: Notes, *, parts: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Their questions as ours."""
    for part in parts:
        for number, item in enumerate(data[part]):
            yield {
                "id": f"{part}/{item.get('ID', number)}",
                "question": item["questions"],
                "answers": [item["answers"]],
                "cited": [notes.add(item[name].strip()) for name in NEWS if (item.get(name) or "").strip()],
            }


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS_OF_THE_FILE, nargs="+", default=PARTS_OF_THE_FILE)
    args = parser.parse_args()
    notes = Notes()
    rows = list(convert(json.loads(args.file.read_text(encoding="utf-8")), notes, parts=args.part))
    for path in sorted(args.docs.iterdir()) if args.docs else ():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                notes.add(line.strip())
    write(args.out, rows, notes)


if __name__ == "__main__":
    main()
