"""Variants of a task (another prompt over the same documents, the same metrics): systems beside the models' own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from qilin_tasks.results.reader import TaskResult
from qilin_tasks.signature import GIVEN, signature_parts

#: Parts of a signature that come of asking a language model; baselines and answers from elsewhere read no prompt.
PROMPT_PARTS = ("chat", "system", "gen", "shots", "prompt", "repeats", GIVEN)
#: The part that a variant may differ in: model and prompt are compared as one system, named for both.
VARIED = ("prompt",)
#: Parts that only columns of their own depend on: a result without the part has none of them to compare.
COLUMN_PARTS = ("engaged",)
#: Tasks with the same of these are about the same, so that it is worth a word why they don't stand side by side.
_SAME = ("family", "data", "n")


def reference_signature(results: Sequence[TaskResult]) -> str | None:
    """The signature that most language models share; a baseline's only where there is no other."""
    counts = Counter(r.signature for r in results if r.asked) or Counter(r.signature for r in results)
    return counts.most_common(1)[0][0]


def changed_parts(
    first: dict[str, str], second: dict[str, str], *, ignored: Collection[str] = (*VARIED, *COLUMN_PARTS)
) -> list[str]:
    """What two signatures differ in: `note 300 instead of 600`."""
    return [
        f"{key} {first.get(key, '-')} instead of {second.get(key, '-')}"
        for key in {**second, **first}
        if key not in ignored and first.get(key) != second.get(key)
    ]


def difference(result: TaskResult, signature: str | None, *, systems: Collection[str] = ()) -> str:
    """Why a result can't stand beside those of `signature`; "" where it can, with another prompt too."""
    mine, theirs = result.parts, signature_parts(signature)
    if not mine or not theirs:
        return "" if result.signature == signature else "no signature on one side, so what was measured isn't known"
    ignored = (*systems, *VARIED) if result.asked else PROMPT_PARTS
    one_sided = [key for key in COLUMN_PARTS if key not in mine or key not in theirs]
    changed = changed_parts(mine, theirs, ignored=(*ignored, *one_sided))
    return f"other signature ({', '.join(changed)}): not compared" if changed else ""


def beside_models(results: Sequence[TaskResult]) -> tuple[list[TaskResult], dict[str, list[str]]]:
    """The results with variants as rows of the task that most models were asked; what to know, by task.

    A variant is a task whose signature differs in the prompt alone, or a result of the same task that does. It has the
    task's name or the prompt's digest behind its model's. Of the baselines, which read no prompt, the task's own stay.
    """
    by_task: dict[str, list[TaskResult]] = {}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    order = sorted(by_task, key=lambda task: (-sum(result.asked for result in by_task[task]), task))
    kept: dict[str, list[TaskResult]] = {}
    notes: dict[str, list[str]] = {}
    for task in order:
        own = signature_parts(reference_signature(by_task[task]))
        base, reasons = None, []
        for other, members in kept.items():
            theirs = signature_parts(reference_signature(members))
            if "data" not in own or any(own.get(key) != theirs.get(key) for key in _SAME):
                continue
            changed = changed_parts(own, theirs)
            if not changed:
                base = other
                break
            reasons.append(f"{task} is no variant of {other}: {', '.join(changed)}")
        if base is None:
            kept[task] = by_task[task]
            notes[task] = reasons
            continue
        there = {result.model for result in kept[base]}
        kept[base] = kept[base] + [
            replace(result, task=base, model=f"{result.model} ({task})" if _needs_name(result, there) else result.model)
            for result in by_task[task]
            if not (result.is_baseline and result.model in there)
        ]
        notes[base].append(
            f"{task} is {base} with another prompt: its rows bear its name, and are tested with the rest"
        )
    return [_labelled(result, kept[result.task], notes) for members in kept.values() for result in members], notes


def _needs_name(result: TaskResult, there: Collection[str]) -> bool:
    """A model is another system with another prompt; what read no prompt is the same, unless the name is taken."""
    return result.asked or result.model in there


def _labelled(result: TaskResult, members: Sequence[TaskResult], notes: dict[str, list[str]]) -> TaskResult:
    """A result of the same task under another prompt, by the prompt's digest."""
    prompt = result.parts.get("prompt")
    usual = signature_parts(reference_signature(members)).get("prompt")
    if not result.asked or prompt == usual or prompt is None or result.entry.rpartition("::")[2] != result.task:
        return result
    notes[result.task].append(f"{result.task}, {result.model}: prompt {prompt} instead of {usual}, a system of its own")
    return replace(result, model=f"{result.model} (prompt {prompt})")
