"""`qilin-tasks judge`: stored answers before a model that judges them, its errors counted, checked and corrected."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from qilin_tasks.errors import SettingError

if TYPE_CHECKING:
    from qilin_tasks.compare.specs import ModelSpec
    from qilin_tasks.judge.answers import Answer
    from qilin_tasks.judge.labels import Label
    from qilin_tasks.judge.prompts import Prompts

EXAMPLE = """example:
  qilin-tasks judge runs/ --judge vllm:Qwen/Qwen2.5-72B-Instruct --out judged/ --labels people.jsonl
  qilin-tasks judge runs/ --judge judge.yaml --mode pairs --models qwen7b,llama8b --repeats 3 --out judged/

No model of the results is asked again. The first run makes the nuggets of the references and freezes them in
OUT/nuggets.json; the same command goes on after an interruption. --labels holds one JSON object a line:
  {"task": "qilin_dqa_bm25", "key": 17, "model": "qwen7b", "score": 0.5}       or "verdicts": ["supported", "not", …]
  {"task": "qilin_dqa_bm25", "key": 17, "first": "qwen7b", "second": "llama8b", "verdict": "tie"}  with --mode pairs
The labelled answers should be a random sample: their mean error corrects the judge's means.
"""
#: Repeats of a greedy model are copies.
SAMPLING = {"do_sample": True, "temperature": 0.7}
GREEDY = {"do_sample": False, "temperature": 0.0}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "judge", description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, help="folders of compare, run or lm_eval with --log_samples")
    parser.add_argument(
        "--judge", required=True, metavar="BACKEND:NAME[,KEY=VALUE…]", help="the judge, or a models.yaml with one model"
    )
    parser.add_argument("--out", required=True, type=Path, help="folder of the judgement; the same one goes on")
    parser.add_argument("--mode", choices=("nuggets", "pairs"), default="nuggets", help="what is judged (nuggets)")
    parser.add_argument("--nuggets", type=Path, metavar="FILE", help="frozen nuggets, instead of OUT/nuggets.json")
    parser.add_argument("--prompts", default="zh", metavar="zh|en|FILE", help="the judge's prompts (zh)")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="people's labels of some of the answers")
    parser.add_argument("--repeats", type=int, default=1, help="times that each verdict is asked for (1)")
    parser.add_argument("--tasks", default="", help="only these tasks, separated by commas")
    parser.add_argument("--models", default="", help="only the answers of these models, separated by commas")
    parser.add_argument("--limit", type=int, default=None, help="documents a task, drawn by their content")
    parser.add_argument("--answer-chars", type=int, default=4000, help="characters of an answer that are shown (4000)")
    parser.add_argument("--gen_kwargs", nargs="+", default=[], help="generation settings: key=value … or a JSON object")
    parser.add_argument("--repair", action="store_true", help="set a broken answer file aside, keep all that holds")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge, write and print. Raises QilinTasksError for what is not in order; 0 for a bad judge too: it says so."""
    from qilin_tasks.files import locked
    from qilin_tasks.judge.answers import sampled, stored_answers
    from qilin_tasks.judge.labels import read_labels
    from qilin_tasks.judge.prompts import read_prompts

    for flag, number in (("--repeats", args.repeats), ("--limit", args.limit), ("--answer-chars", args.answer_chars)):
        if number is not None and number < 1:
            raise SettingError(f"{flag} {number}: must be at least 1")
    prompts = read_prompts(args.prompts)
    labels = read_labels(args.labels, mode=args.mode) if args.labels else []
    answers = stored_answers(
        args.runs, tasks=_names(args.tasks), models=_names(args.models), most_chars=args.answer_chars
    )
    answers = sampled(answers, limit=args.limit, kept={(label.task, label.key) for label in labels})
    held = "another judge command is running on this folder; wait for it or stop it"
    with locked(args.out / "judgement", held=held):
        return _judge(args, prompts, labels, answers)


def _judge(args: argparse.Namespace, prompts: Prompts, labels: list[Label], answers: list[Answer]) -> int:
    from qilin_tasks.compare.secrets import resolve
    from qilin_tasks.harness.lone_prompts import lone_prompts
    from qilin_tasks.harness.metadata import parse_settings
    from qilin_tasks.harness.response_store import ResponseStore
    from qilin_tasks.harness.store_repair import repair
    from qilin_tasks.judge.run import Judge, frozen_nuggets, judgement_of_nuggets, judgement_of_pairs, write

    spec = _spec(args.judge)
    own = {**spec.generation, **parse_settings(args.gen_kwargs, flag="--gen_kwargs")}
    generation = {**(SAMPLING if args.repeats > 1 else GREEDY), **own}
    # As a judge is another system with another template or instruction, its answers are kept apart.
    identity = {**spec.identity(), "chat_template": spec.chat_template, "system_instruction": spec.system_instruction}
    path = args.out / "responses" / f"{spec.name}.sqlite"
    if args.repair and (done := repair(path, identity=identity)) is not None:
        print(f"{path}: {done[0]} answers kept, the broken file is {done[1].name}", file=sys.stderr)
    os.environ.update({key: str(value) for key, value in resolve(spec.environment).items()})
    with ResponseStore(path, identity=identity) as store:
        ask = lone_prompts(
            spec.backend,
            resolve(spec.args),
            store=store,
            batch_size=spec.batch_size,
            chat_template=spec.chat_template,
            generation=generation,
            system_instruction=spec.system_instruction,
        )
        judge = Judge(spec.name, identity, generation, ask, prompts, args.repeats)
        if args.mode == "pairs":
            made, judged = judgement_of_pairs(answers, judge, labels)
        else:
            file = args.nuggets or args.out / "nuggets.json"
            nuggets = frozen_nuggets(answers, judge, path=file, given=args.nuggets is not None)
            made, judged = judgement_of_nuggets(answers, nuggets, judge, labels)
    files = write(made, judged, args.out)
    print(files[1].read_text(encoding="utf-8"))
    for file in files:
        print(file)
    return 0


def _spec(text: str) -> ModelSpec:
    from qilin_tasks.compare.specs import check_models, read_models, shorthand

    specs = read_models(Path(text)) if text.endswith((".yaml", ".yml")) else [shorthand(text)]
    if len(specs) != 1:
        raise SettingError(f"--judge {text}: one model judges, and the file names {len(specs)}")
    check_models(specs)
    return specs[0]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
