"""Real models on real data: runs what is missing, then writes docs/results.md and its plots from what is stored.

    python benchmarks/results/make.py [--quick] [--only STEP …] [--data ../shared] [--out docs]

Each step is a benchmark of its own, whose last line of JSON is kept in OUT/results/STEP.json with its command and date
as soon as it is there: the same call goes on with what is missing, and runs a step again whose command changed.
`--quick` asks a few questions of each and is for tests; its page says so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from page import page
from steps import STEPS, Step, StoredStep

from qilin_tasks.files import write_whole

REPO = Path(__file__).resolve().parents[2]


def command_of(step: Step, *, data: str, quick: bool) -> list[str]:
    """The step's command line, as a reader would type it in the repository's root."""
    arguments = [argument.format(data=data) for argument in (*step.arguments, *(step.quick if quick else ()))]
    return ["python", f"benchmarks/{step.script}", *arguments]


def stored(path: Path, command: Sequence[str]) -> StoredStep | None:
    """What is kept of a step, unless its command was another."""
    if not path.is_file():
        return None
    kept: StoredStep = json.loads(path.read_text("utf-8"))
    return kept if kept["command"] == list(command) else None


def run(name: str, command: Sequence[str], path: Path) -> StoredStep:
    """Run a step to its end and keep what it found; a step that fails ends the program and keeps nothing."""
    print(f"{name}: {' '.join(command)}", flush=True)
    search = os.pathsep.join(filter(None, [str(REPO), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, *command[1:]],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": search, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        sys.exit(f"{name} failed with exit code {ran.returncode}; what was finished before is kept in {path.parent}")
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    found: StoredStep = {"command": list(command), "date": day, "result": json.loads(ran.stdout.splitlines()[-1])}
    write_whole(path, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared", help="folder with data/xquad, data/iapp and data/qilin")
    parser.add_argument("--out", type=Path, default=REPO / "docs", help="where the page goes (default: docs)")
    parser.add_argument("--only", nargs="+", choices=sorted(STEPS), help="run no other step")
    parser.add_argument("--page-only", action="store_true", help="run nothing, write the page from what is stored")
    parser.add_argument("--quick", action="store_true", help="a few questions of each, for tests")
    args = parser.parse_args()
    folder = args.out / "results"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, StoredStep] = {}
    for name, step in STEPS.items():
        command, path = command_of(step, data=args.data, quick=args.quick), folder / f"{name}.json"
        kept = stored(path, command)
        if kept is None and not args.page_only and (args.only is None or name in args.only):
            kept = run(name, command, path)
        if kept is not None:
            found[name] = kept
            text, plots = page(found, quick=args.quick)
            for plot, svg in plots.items():
                write_whole(folder / plot, svg)
            write_whole(args.out / "results.md", text)
    print(f"{args.out / 'results.md'}: {len(found)} of {len(STEPS)} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
