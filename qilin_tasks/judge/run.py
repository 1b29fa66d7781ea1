"""From stored answers to a judgement: nuggets frozen, the judge asked, its answers counted and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.files import together
from qilin_tasks.judge.answers import Answer
from qilin_tasks.judge.asking import Ask
from qilin_tasks.judge.checks import Check, check, control_answers, control_pairs, share_above, share_won
from qilin_tasks.judge.grading import MAIN as NUGGETS
from qilin_tasks.judge.grading import judge_nuggets
from qilin_tasks.judge.judged import Judged, failed_share, with_itself, with_people
from qilin_tasks.judge.labels import Label
from qilin_tasks.judge.nuggets import Nuggets, check_covers, make_nuggets, read_frozen
from qilin_tasks.judge.outcome import FORMAT, Judgement, rows_of
from qilin_tasks.judge.pairs import MAIN as WIN_RATE
from qilin_tasks.judge.pairs import judge_pairs, model_pairs
from qilin_tasks.judge.prompts import Prompts
from qilin_tasks.judge.readings import VERSION
from qilin_tasks.judge.tables import markdown
from qilin_tasks.signature import digest, digest_all, signature


@dataclass(frozen=True)
class Judge:
    """Who judges: `identity` is what its verdicts depend on, `ask` reaches it."""

    name: str
    identity: Mapping[str, Any]
    generation: Mapping[str, Any]
    ask: Ask
    prompts: Prompts
    repeats: int


def frozen_nuggets(answers: Sequence[Answer], judge: Judge, *, path: Path, given: bool) -> Nuggets:
    """The file's nuggets; where there is none and none was `given`, they are made by the judge and written there."""
    if given or path.exists():
        nuggets = read_frozen(path)
        check_covers(nuggets, answers, path=path)
        return nuggets
    nuggets = make_nuggets(answers, judge.ask, judge.prompts, model={"name": judge.name, **judge.identity})
    nuggets.write(path)
    return nuggets


def judgement_of_nuggets(
    answers: Sequence[Answer], nuggets: Nuggets, judge: Judge, labels: Sequence[Label]
) -> tuple[Judgement, list[Judged]]:
    """Every answer against its nuggets. Raises DataError where no reference has any, or labels don't fit them."""
    items = {answer.item for answer in answers}
    without = len(items & set(nuggets.failed)) / len(items)
    judged = judge_nuggets(answers, nuggets.by_item, judge.ask, judge.prompts, repeats=judge.repeats)
    controls = [answer for pair in control_answers(answers) for answer in pair]
    known = judge_nuggets(controls, nuggets.by_item, judge.ask, judge.prompts, repeats=1)
    checks = [
        check("without_nuggets", without),
        check("failed", failed_share(judged)),
        check("controls", share_above(known, NUGGETS)),
    ]
    more = {"nuggets": nuggets.digest}
    return _judgement("nuggets", answers, judged, judge, labels, checks=checks, main=NUGGETS, more=more), judged


def judgement_of_pairs(
    answers: Sequence[Answer], judge: Judge, labels: Sequence[Label]
) -> tuple[Judgement, list[Judged]]:
    """Every two models' answers in both orders. Raises SettingError where no document has two."""
    pairs = model_pairs(answers)
    if not pairs:
        raise SettingError("--mode pairs needs two models that answered the same documents of a task")
    judged = judge_pairs(pairs, judge.ask, judge.prompts, repeats=judge.repeats)
    known = judge_pairs(control_pairs(pairs), judge.ask, judge.prompts, repeats=1)
    inconsistent = [value for one in judged if (value := one.value("position_inconsistency")) is not None]
    checks = [
        check("failed", failed_share(judged)),
        check("inconsistent", sum(inconsistent) / len(inconsistent) if inconsistent else None),
        check("controls", share_won(known)),
    ]
    return _judgement("pairs", answers, judged, judge, labels, checks=checks, main=WIN_RATE, more={}), judged


def _judgement(
    mode: str,
    answers: Sequence[Answer],
    judged: list[Judged],
    judge: Judge,
    labels: Sequence[Label],
    *,
    checks: list[Check],
    main: str,
    more: Mapping[str, str],
) -> Judgement:
    if judge.repeats > 1:
        kappa, correlation = with_itself(judged, main)
        checks += [check("itself_kappa", kappa), check("itself_spearman", correlation)]
    labels = _placed(labels, judged)
    if labels:
        checks += _people(judged, labels, main=main)
    said = signature(
        "judge",
        {
            "mode": mode,
            "judge": f"{judge.name}@{digest(judge.identity)}",
            "prompts": judge.prompts.part,
            "gen": digest(judge.generation),
            "repeats": judge.repeats,
            "reading": VERSION,
            **more,
            "answers": digest_all([a.task, a.model, str(a.key), a.item, a.text] for a in answers),
            "n": len(answers),
        },
    )
    return {
        "format": FORMAT,
        "mode": mode,
        "signature": said,
        "judge": judge.name,
        "main": main,
        "documents": len({(answer.task, str(answer.key)) for answer in answers}),
        "cut": sum(answer.cut for answer in answers),
        "rows": rows_of(judged, labels, main=main),
        "checks": checks,
        "bad": [one["name"] for one in checks if not one["passed"]],
    }


def _placed(labels: Sequence[Label], judged: Sequence[Judged]) -> list[Label]:
    """Labels with the models in the order of the judged. Raises DataError for one that names nothing judged."""
    there = {one.place for one in judged}
    turned = [label if label.place in there else label.turned() for label in labels]
    lost = [label for label in turned if label.place not in there]
    if lost:
        raise DataError(
            f"--labels: {len(lost)} of {len(labels)} name no judged answer, the first is task {lost[0].task!r}, key "
            f"{lost[0].key!r}, {' and '.join(lost[0].models)}: task, key and model must be those of the samples file"
        )
    return turned


def _people(judged: Sequence[Judged], labels: Sequence[Label], *, main: str) -> list[Check]:
    try:
        kappa, correlation = with_people(judged, labels, main)
    except ValueError as error:
        raise DataError(
            f"--labels: the verdicts of a label are more or fewer than the frozen nuggets of its reference ({error})"
        ) from error
    # Scores without verdicts have no kappa.
    made = [check("people_kappa", kappa)] if any(label.verdicts for label in labels) else []
    return [*made, check("people_spearman", correlation)]


def write(made: Judgement, judged: Sequence[Judged], out: Path) -> list[Path]:
    """The judgement as JSON and Markdown, and every verdict as JSON lines."""
    lines = "".join(json.dumps(asdict(one), ensure_ascii=False, default=str) + "\n" for one in judged)
    texts = {
        f"judgement-{made['mode']}.json": json.dumps(made, ensure_ascii=False, indent=1) + "\n",
        f"judgement-{made['mode']}.md": markdown(made),
        f"verdicts-{made['mode']}.jsonl": lines,
    }
    with together() as files:
        for name, text in texts.items():
            files.write(out / name, text)
    return [out / name for name in texts]
