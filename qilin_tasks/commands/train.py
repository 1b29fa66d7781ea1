"""`qilin-tasks train`: a system of `rank` learns from the clicks of a training config."""

from __future__ import annotations

import argparse
from pathlib import Path

from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.systems.losses import TRAINED
from qilin_tasks.systems.processes import started
from qilin_tasks.systems.recipe import RECIPES, TRAINING_CONFIGS, load_recipe
from qilin_tasks.systems.system import INPUTS
from qilin_tasks.systems.train import train
from qilin_tasks.systems.train_dcn import DCN, dcn_settings, train_dcn_into

DESCRIPTION = """\
Train a bi-encoder, a cross-encoder or DCN-V2 on clicks, for `qilin-tasks rank`.

  qilin-tasks train --system bert-cross --recipe paper --model google-bert/bert-base-chinese --out cross/
  qilin-tasks rank --system bert-cross --model cross/ --input string --config search_test --out runs/
  qilin-tasks train --system dcn-v2 --out dcn/
  qilin-tasks rank --system dcn-v2 --model dcn/ --config search_test --out runs/

A training that was stopped goes on where it was saved last. Several processes, a GPU each:

  torchrun --nproc-per-node 4 -m qilin_tasks.cli train --system bert-bi ...
"""
#: Options that go over the recipe's own values.
CHANGES = ("epochs", "batch_size", "negatives", "learning_rate", "max_length", "input")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser(
        "train", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", required=True, metavar="|".join((*TRAINED, DCN)), help="what to train")
    parser.add_argument("--model", help="bert-bi, bert-cross: hub name or folder of what to start from")
    parser.add_argument("--out", type=Path, required=True, help="folder for the trained model")
    parser.add_argument(
        "--config", default="search_train", metavar="|".join(TRAINING_CONFIGS), help="default %(default)s"
    )
    parser.add_argument("--recipe", default="ours", metavar="|".join(RECIPES), help="default %(default)s")
    parser.add_argument("--data", help="sample, a folder, or a hub id (default: $QILIN_DATA, else THUIR/Qilin)")
    parser.add_argument("--rows", type=int, metavar="N", help="only the first rows")
    parser.add_argument("--steps", type=int, metavar="N", help="stop after so many steps")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument("--device", default="auto", help="auto (all GPUs, else the CPU) or one of torch's names")
    parser.add_argument("--save-every", type=int, default=500, metavar="STEPS", help="default %(default)s")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    over = parser.add_argument_group("instead of the recipe's")
    over.add_argument("--epochs", type=int)
    over.add_argument("--batch-size", type=int, help="requests of a step")
    over.add_argument("--negatives", type=int, help="notes beside each clicked one")
    over.add_argument("--learning-rate", type=float)
    over.add_argument("--max-length", type=int, help="tokens")
    over.add_argument("--input", metavar="|".join(INPUTS), help="bert-cross: as for rank")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train and say where the model is."""
    if args.system not in (*TRAINED, DCN):
        raise unknown("--system", args.system, (*TRAINED, DCN))
    for name in ("rows", "steps", "save_every"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise SettingError(f"--{name.replace('_', '-')} {value}: choose a number from 1")
    if args.system == DCN:
        return _run_dcn(args)
    if args.model is None:
        raise SettingError(f"--system {args.system} needs --model FOLDER (or a hub name): what to start from")
    recipe, differs = load_recipe(
        args.recipe,
        system=args.system,
        config=args.config,
        changes={name: getattr(args, name) for name in CHANGES},
    )
    first = started()[0] == 0
    for line in differs if first else ():
        print(f"{args.recipe}: {line}")
    out = train(
        open_qilin(args.data),
        system=args.system,
        config=args.config,
        recipe=recipe,
        differs=differs,
        model=args.model,
        out=args.out,
        rows=args.rows,
        steps=args.steps,
        seed=args.seed,
        device=args.device,
        save_every=args.save_every,
        progress=not args.quiet,
    )
    if first:
        print(out)
    return 0


def _run_dcn(args: argparse.Namespace) -> int:
    """DCN-V2 starts from nothing, reads features in place of texts and is saved after every pass."""
    if started()[1] > 1:
        raise SettingError(f"--system {DCN} trains in one process: start it without torchrun")
    for name in ("model", "steps", "negatives", "max_length", "input"):
        if getattr(args, name) is not None:
            raise SettingError(f"--system {DCN} takes no --{name.replace('_', '-')}: leave it out")
    settings = dcn_settings(
        args.recipe,
        seed=args.seed,
        changes={name: getattr(args, name) for name in ("epochs", "batch_size", "learning_rate")},
    )
    source = open_qilin(args.data)
    print(train_dcn_into(args.out, source, args.config, settings, rows=args.rows, progress=not args.quiet))
    return 0
