"""DomainRAG (Wang et al. 2024, arXiv 2406.05654), https://github.com/ShootingWong/DomainRAG: its files to our columns.

python domain_rag.py basic_qa_retrieved_bm25.jsonl --out converted [--top-k 20]

`retrieved_psgs` (files named …_retrieved_…) come with the question, `positive_reference(s)` are cited. Blanks in titles
and passages go, as in their prompts. Earlier turns and a year (`history_qa`, `date`) stand before the question.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lines import PARTS, Notes, write


def references(answers: object) -> list[str]:
    """Answers are a text, texts that say the same, or lists of parts that are all needed."""
    several = answers if isinstance(answers, list) else [answers]
    return [PARTS.join(map(str, answer)) if isinstance(answer, list) else str(answer) for answer in several]


def question(item: Mapping[str, Any]) -> str:
    """The question, after the turns and the year that it needs."""
    turns = [f"问：{turn['question']}\n答：{turn['answers'][0]}\n问：" for turn in item.get("history_qa", ())]
    year = f"{item['date']}年 " if "date" in item else ""
    return "".join(turns) + year + str(item["question"])


def convert(lines: Iterable[str], notes: Notes, *, top_k: int) -> Iterator[dict[str, Any]]:
    """Their rows as ours."""

    def add(passages: object) -> list[str]:
        held = passages if isinstance(passages, list) else [passages] if passages else []
        return [notes.add(p["contents"].replace(" ", ""), title=p["title"].replace(" ", "")) for p in held]

    for number, line in enumerate(lines, start=1):
        item = json.loads(line, strict=False)
        yield {
            "id": str(number),
            "question": question(item),
            "answers": references(item["answers"] if "answers" in item else item["answer"]),
            "notes": add(item.get("retrieved_psgs", [])[:top_k]),
            "cited": add(item.get("positive_references", item.get("positive_reference"))),
        }


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--top-k", type=int, default=20)
    args = parser.parse_args()
    notes = Notes()
    with args.file.open(encoding="utf-8") as lines:
        rows = list(convert(lines, notes, top_k=args.top_k))
    write(args.out, rows, notes)


if __name__ == "__main__":
    main()
