"""`qilin-tasks compare`: many models over many tasks, gone on with after any interruption."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from qilin_tasks.compare.specs import ON_REFUSAL
from qilin_tasks.errors import SettingError, unknown

EXAMPLE = """example:
  qilin-tasks compare models.yaml --tasks qilin_dqa,reqa_squad --out runs/
  qilin-tasks compare --model vllm:Qwen/Qwen2.5-7B-Instruct --model qilin-baseline:lead --tasks qilin_dqa --out runs/

models.yaml is a list of maps:
  - name: qwen7b
    backend: vllm                 # vllm, hf, local-chat-completions, openai-chat-completions, qilin-baseline, ...
    args: {pretrained: Qwen/Qwen2.5-7B-Instruct, max_model_len: 8192}
    generation: {temperature: 0.0}
    environment: {CUDA_VISIBLE_DEVICES: "0", OPENAI_API_KEY: "${MY_KEY}"}   # keys only as ${VARIABLE}
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "compare",
        description=__doc__,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("models", nargs="?", type=Path, help="models.yaml")
    parser.add_argument("--model", action="append", default=[], metavar="BACKEND:NAME[,KEY=VALUE…]", help="one model")
    parser.add_argument("--tasks", required=True, help="tasks or groups, separated by commas")
    parser.add_argument("--out", required=True, type=Path, help="folder of the results; the same one goes on")
    parser.add_argument("--metadata", nargs="+", default=[], help="task settings: key=value … or a JSON object")
    parser.add_argument("--gen_kwargs", nargs="+", default=[], help="generation settings: key=value … or a JSON object")
    parser.add_argument("--limit", type=float, default=None, help="documents a task (below 1: a share); for trying out")
    parser.add_argument("--num_fewshot", type=int, default=None, help="examples in the prompt")
    parser.add_argument("--include_path", action="append", default=[], help="another folder of task YAML")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time (default 1: each has all the GPUs)")
    parser.add_argument("--only", action="append", default=[], metavar="MODEL", help="of the models only this one")
    parser.add_argument("--gpus", metavar="all|0,1,…", help="hand these GPUs out: local models run side by side")
    parser.add_argument(
        "--budget", nargs="+", default=[], help="stop cleanly at money=…, tokens=… or hours=…; the same command goes on"
    )
    parser.add_argument("--chunk", type=int, default=512, help="requests a crash may lose (vLLM loses about a second)")
    parser.add_argument("--ray", metavar="ADDRESS", help="run on a Ray cluster: auto, host:port, ray://…, local")
    parser.add_argument(
        "--on_refusal", choices=ON_REFUSAL, default="stop", help="a content filter's refusal: fail, or count as empty"
    )
    for flag, what in (
        ("--hf_hub_log_args", "push results to a hub repository"),
        ("--wandb_args", "log to Weights & Biases, a run for each model and task"),
        ("--wandb_config_args", "its config"),
    ):
        parser.add_argument(flag, nargs="+", default=[], help=f"lm-eval's own: {what}: key=value … or a JSON object")
    parser.add_argument("--repair", action="store_true", help="set broken answer files aside, keep all that holds")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run, reused and asked")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when every (model, task) is finished, 1 when one failed, 3 when the budget stopped some and none failed."""
    from qilin_tasks.compare.budget import check_budget, parse_budget
    from qilin_tasks.compare.devices import Pool, chosen_gpus
    from qilin_tasks.compare.dry_run import describe
    from qilin_tasks.compare.run import make_plan, only_one, run_pairs
    from qilin_tasks.compare.specs import LOGGERS, check_models, read_models, shorthand, with_loggers
    from qilin_tasks.compare.state import Options, check_head, pair_up, repair_stores, write_head
    from qilin_tasks.harness.metadata import parse_settings

    specs = [*(read_models(args.models) if args.models else ()), *map(shorthand, args.model)]
    loggers = {name: parse_settings(getattr(args, name), flag=f"--{name}") for name in LOGGERS}
    specs = [with_loggers(spec, loggers) for spec in _only(specs, args.only)]
    check_models(specs)
    names = tuple(name.strip() for name in args.tasks.split(",") if name.strip())
    if not names:
        raise SettingError("--tasks is empty: give tasks or groups, for example qilin_dqa,reqa_squad")
    for flag, number in (("--jobs", args.jobs), ("--chunk", args.chunk), ("--limit", args.limit)):
        if number is not None and number <= 0:
            raise SettingError(f"{flag} {number:g}: must be above 0")
    options = Options(
        tasks=names,
        out=args.out,
        metadata=parse_settings(args.metadata, flag="--metadata"),
        gen_kwargs=parse_settings(args.gen_kwargs, flag="--gen_kwargs"),
        limit=args.limit,
        num_fewshot=args.num_fewshot,
        include_path=tuple(args.include_path),
        chunk=args.chunk,
        on_refusal=args.on_refusal,
        budget=parse_budget(args.budget),
    )
    check_budget(options.budget, specs)
    check_head(options)
    if args.dry_run:
        with tempfile.TemporaryDirectory() as folder:
            tasks = make_plan(options, folder=Path(folder))
        for line in describe(pair_up(specs, tasks, options), options):
            print(line)
        return 0
    pool = None
    if args.gpus is not None:
        if args.ray is not None:
            raise SettingError("--gpus and --ray: a Ray cluster hands out its GPUs itself; leave --gpus out")
        pool = Pool(chosen_gpus(args.gpus))
        pool.check(specs)
    with only_one(options.out, args.only):
        check_head(options)
        tasks = make_plan(options, folder=options.out / ".plan")
        if args.repair:
            for line in repair_stores(specs, tasks, options):
                print(line, file=sys.stderr)
        pairs = pair_up(specs, tasks, options)
        write_head(options, specs, tasks)
        try:
            standings = run_pairs(pairs, options, jobs=args.jobs, ray_address=args.ray, pool=pool)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            raise
        return _tell(pairs_now=pair_up(specs, tasks, options), standings=standings, out=options.out)


def _only(specs: list[Any], names: list[str]) -> list[Any]:
    """The models that are named; all where none is."""
    known = {spec.name: spec for spec in specs}
    for name in names:
        if name not in known:
            raise unknown("--only: model", name, known)
    return [spec for spec in specs if not names or spec.name in names]


def _tell(*, pairs_now: Any, standings: list[Any], out: Path) -> int:
    from qilin_tasks.results.cost import cost_table
    from qilin_tasks.results.scores import load_scores, short_table

    finished = [pair.result for pair in pairs_now if pair.result is not None]
    if finished:
        print(short_table([load_scores(result) for result in finished]))
        if costs := cost_table(finished):
            print(f"\n{costs}")
        print(f"\nwith statistics, samples and plots: qilin-tasks report {out} --out report/")
    missing = [(pair, how) for pair, how in zip(pairs_now, standings, strict=True) if pair.result is None]
    failed = [(pair, how) for pair, how in missing if how.state != "stopped"]
    if len(stopped := [pair for pair, how in missing if how.state == "stopped"]):
        answers = sum(pair.stored for pair in stopped)
        print(
            f"the budget is used: {len(stopped)} of {len(pairs_now)} are not finished, their {answers} answers are "
            "kept; the same command goes on with as much again",
            file=sys.stderr,
        )
    for pair, how in failed:
        print(f"FAILED {pair.model.name} {pair.task.name}: {how.error or 'no result'}", file=sys.stderr)
        print(f"  log: {out / pair.model.name}/log*.txt; the same command tries it again", file=sys.stderr)
    return 1 if failed else 3 if stopped else 0
