"""`qilin-tasks demo`: a table and a report in a minute: baselines over the embedded sample, and a served model."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from types import ModuleType

from qilin_tasks.errors import SettingError

EXAMPLE = """example:
  qilin-tasks demo
  qilin-tasks demo --base-url http://127.0.0.1:8000/v1 --model Qwen2.5-7B-Instruct

Nothing is downloaded, and no torch is needed. The sample is made up: its numbers show what the tool does, and nothing
about a model. The same command goes on after an interruption. A key goes into OPENAI_API_KEY.
"""
BASELINES = ("lead", "reference")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "demo", description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", metavar="URL", help="a server that speaks OpenAI's chat completions")
    parser.add_argument("--model", metavar="NAME", help="the model's name there")
    parser.add_argument("--out", type=Path, default=Path("qilin-demo"), help="where answers and report go (qilin-demo)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """`compare`, then `report`; the exit code of what fails first. Raises SettingError for half a server."""
    from qilin_tasks.commands import compare, report

    if bool(args.base_url) != bool(args.model):
        raise SettingError("--base-url and --model belong together: the server, and the model's name there")
    os.environ["QILIN_DATA"] = "sample"
    models = [f"qilin-baseline:{name}" for name in BASELINES]
    if args.model:
        url = args.base_url.rstrip("/")
        url += "" if url.endswith("/chat/completions") else "/chat/completions"
        models.append(f"local-chat-completions:{args.model},base_url={url},num_concurrent=8")
    runs, page = args.out / "runs", args.out / "report"
    named = [part for model in models for part in ("--model", model)]
    asked = ["--tasks", "qilin_dqa", "--out", str(runs), "--jobs", str(min(2, os.cpu_count() or 1))]
    if code := _run(compare, "compare", *named, *asked, "--metadata", "bertscore=off"):
        return code
    print("\nROUGE-L against the answer that users were shown; the conditions are the notes that the prompt holds:")
    print("na none, bm25 and bert five retrieved ones, oracle those that the real answer cites.\n")
    if code := _run(report, "report", str(runs), "--out", str(page), "--title", "The embedded sample"):
        return code
    print(f"\nopen {(page / 'index.html').resolve()}")
    return 0


def _run(module: ModuleType, command: str, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    args = parser.parse_args([command, *arguments])
    return int(args.run(args))
