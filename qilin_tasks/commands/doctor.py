"""`qilin-tasks doctor`: is everything in order, before anybody starts a GPU? One line each, with the fix."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qilin_tasks.doctor import environment, network
from qilin_tasks.doctor.findings import Finding, as_json, failure, in_order
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.harness.backends import BACKENDS
from qilin_tasks.harness.metadata import parse_settings

DEFAULT_TASKS = "qilin_dqa"
DESCRIPTION = """Check Python, packages, backend, accelerator, disk, our tasks in the harness, data, metric model and
context budget, one line each: ok, warn, or FAIL with the fix. Exit code 1 if anything fails. Files that are missing are
fetched, as the run would; no weights are loaded and no GPU is opened."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the console script."""
    parser = subparsers.add_parser("doctor", description=DESCRIPTION)
    parser.add_argument(
        "--tasks", nargs="+", default=[DEFAULT_TASKS], help=f"tasks or groups, as lm_eval's (default: {DEFAULT_TASKS})"
    )
    parser.add_argument(
        "--metadata", nargs="+", default=[], help="settings, as lm_eval's: key=value … or a JSON object"
    )
    parser.add_argument("--model", metavar="PATH_OR_ID", help="the model to run, for its tokenizer and its context")
    parser.add_argument("--max_model_len", type=_positive, metavar="N", help="the context you will run with")
    parser.add_argument("--max_gen_toks", type=_positive, metavar="N", help="the answer length you will run with")
    parser.add_argument("--backend", choices=sorted(BACKENDS), help="the harness's --model; then it must be installed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 if any of them is a failure."""
    findings = examine(args)
    if args.json:
        print(as_json(findings))
    else:
        print(*findings, sep="\n")
        failed = sum(finding.status == "fail" for finding in findings)
        print(f"{failed} of {len(findings)} checks failed" if failed else "everything is in order")
    return 0 if in_order(findings) else 1


def examine(args: argparse.Namespace) -> list[Finding]:
    """All findings, cheap ones first."""
    findings = [
        *environment.python_version(),
        *environment.packages(),
        *environment.harness(),
        *environment.backend(args.backend),
    ]
    if args.backend is None or BACKENDS[args.backend].local:
        findings += environment.accelerator()
    if args.backend is None or "vllm" in BACKENDS[args.backend].packages:
        findings += environment.memory()
    if not in_order(findings):
        # What follows needs these packages, and would only repeat the same fault in worse words.
        return findings
    findings += installed_tasks()
    from qilin_tasks.doctor.data import uses_the_hub

    findings += environment.disk(downloads=uses_the_hub())
    if not in_order(findings[-2:]):
        return [*findings, Finding("data", "warn", "not looked at: a download would fill the disk", "see above")]
    try:
        findings.append(network.hub())
        with _quiet("qilin_tasks", "lm_eval"), network.offline(findings[-1].status == "warn"):
            return [*findings, *_of_tasks(args, parse_settings(args.metadata, flag="--metadata"))]
    except QilinTasksError as error:
        return [*findings, failure("tasks", error)]
    except ImportError as error:
        return [*findings, Finding("tasks", "fail", f"can't be imported: {error}", "reinstall the package it names")]


def installed_tasks() -> list[Finding]:
    """Whether plain `lm_eval` finds our tasks, and this version of them."""
    from qilin_tasks.harness.install import CURRENT, STATES, survey
    from qilin_tasks.harness.location import find_harness

    harness = find_harness()
    findings = []
    for copy in survey(harness.tasks):
        check = f"installed tasks, {copy.target.name}"
        if copy.state in CURRENT:
            findings.append(Finding(check, "ok", f"{STATES[copy.state]}, in {copy.target}"))
        elif copy.state == "missing":
            fix = "qilin-tasks install, or start with `qilin-tasks run` instead of `lm_eval`"
            detail = f"not in lm-eval {harness.version}, plain `lm_eval` will not find them"
            findings.append(Finding(check, "warn", detail, fix))
        else:
            detail = f"{copy.target}: {STATES[copy.state]}; `lm_eval` would run it as it is there"
            findings.append(Finding(check, "fail", detail, "qilin-tasks install (it says what is in the way)"))
    return findings


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """What is warned of while tasks are built is in the findings."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _of_tasks(args: argparse.Namespace, metadata: Mapping[str, Any]) -> list[Finding]:
    """Data, metric model, documents and context of the tasks asked for."""
    from qilin_tasks.doctor import budget
    from qilin_tasks.doctor.data import documents, dqa_data
    from qilin_tasks.doctor.images import covers
    from qilin_tasks.doctor.metric_model import bertscore
    from qilin_tasks.doctor.rankings import ranking_data
    from qilin_tasks.harness import task_manager as harness
    from qilin_tasks.harness.length import BY_CHARACTERS

    asked = [name for given in args.tasks for name in given.split(",")]
    manager = harness.task_manager(asked, metadata=metadata)
    harness.check_settings(asked, manager, metadata, shots=None)
    names = harness.expand(asked, manager)
    recipes = {name: harness.recipe(name, manager) for name in names}
    findings = dqa_data() if any(name.startswith("qilin_dqa") for name in names) else []
    # With its data at fault, none of the DQA tasks has anything to add.
    names = [name for name in names if in_order(findings) or not name.startswith("qilin_dqa")]
    findings += [*ranking_data(recipes.values()), *covers(recipes.values())]
    metric_models = bertscore(recipes.values())
    findings += metric_models
    # A metric model that is missing has its line; the documents are looked at all the same.
    manager = (
        manager if in_order(metric_models) else harness.task_manager(asked, metadata={**metadata, "bertscore": "off"})
    )
    requests: dict[str, list[Any]] = {}
    for name in names:
        try:
            task = harness.load(name, manager)
            requests[name] = harness.requests(task)
            findings.append(documents(name, task))
        except QilinTasksError as error:
            findings.append(failure(name, error))
    model = budget.model_of(args.model) if args.model else BY_CHARACTERS
    if isinstance(model, Finding):
        return [*findings, model]
    if not requests:
        return findings
    lengths = {"max_model_len": args.max_model_len, "max_gen_toks": args.max_gen_toks}
    return [*findings, budget.context(requests, model, **lengths)]
