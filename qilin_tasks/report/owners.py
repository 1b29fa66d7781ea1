"""Whose a row is, where a report is made of several folders: the folder that it was found in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qilin_tasks.results.reader import TaskResult


def owned(results: Sequence[TaskResult], roots: Sequence[Path]) -> list[TaskResult]:
    """The results with their `owner`, as they are where there is only one folder.

    An owner is the last part of a folder's path, or the path as it was given where that doesn't tell two apart.
    """
    if len({root.resolve() for root in roots}) < 2:
        return list(results)
    # The innermost folder first: `runs/` and `runs/mine/` may both be given.
    places = sorted(roots, key=lambda root: len(root.resolve().parts), reverse=True)
    names = [root.resolve().name for root in places]
    labels = names if len(set(names)) == len(names) else [str(root) for root in places]

    def owner(result: TaskResult) -> str:
        path = result.path.resolve()
        return next(label for root, label in zip(places, labels, strict=True) if path.is_relative_to(root.resolve()))

    return [replace(result, owner=owner(result)) for result in results]
