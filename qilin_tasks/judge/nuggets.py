"""Nuggets of references: made once by a named model, frozen in a file whose digest goes into the signature.

After AutoNuggetizer (Pradeep et al. 2025, arXiv 2504.15068).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.files import write_whole
from qilin_tasks.judge.answers import Answer
from qilin_tasks.judge.asking import Ask
from qilin_tasks.judge.prompts import Prompts
from qilin_tasks.judge.readings import VERSION, Nugget, read_nuggets
from qilin_tasks.signature import digest

FORMAT = 1
#: Tokens that a list of nuggets may take.
LONGEST = 768


@dataclass(frozen=True)
class Nuggets:
    """Nuggets by item; `recipe` says what made them; items of `failed` are those whose list could not be read."""

    recipe: Mapping[str, Any]
    by_item: Mapping[str, Sequence[Nugget]]
    failed: Sequence[str]

    @property
    def digest(self) -> str:
        """Of everything in the file."""
        return digest([self.recipe, self._plain(), sorted(self.failed)])

    def _plain(self) -> dict[str, list[dict[str, Any]]]:
        return {item: [nugget._asdict() for nugget in found] for item, found in sorted(self.by_item.items())}

    def write(self, path: Path) -> None:
        """Freeze them."""
        held = {"recipe": self.recipe, "nuggets": self._plain(), "failed": sorted(self.failed)}
        text = json.dumps({"format": FORMAT, "digest": self.digest, **held}, ensure_ascii=False, indent=1)
        write_whole(path, text + "\n")


def make_nuggets(answers: Sequence[Answer], ask: Ask, prompts: Prompts, *, model: Mapping[str, Any]) -> Nuggets:
    """Nuggets of every reference among the answers; a list that can't be read is counted."""
    items = {answer.item: answer for answer in answers}
    asked = [prompts.fill("nuggets", question=a.question, reference=a.reference) for a in items.values()]
    read = [read_nuggets(texts[0]) for texts in ask(asked, repeats=1, longest=LONGEST)]
    found = {item: nuggets for item, nuggets in zip(items, read, strict=True) if nuggets}
    recipe = {"model": dict(model), "prompts": prompts.part, "reading": VERSION}
    return Nuggets(recipe, found, [item for item in items if item not in found])


def read_frozen(path: Path) -> Nuggets:
    """A frozen file. Raises DataError for another format, and where its digest says that it was edited."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        form = data["format"]
        by_item = {
            str(item): [Nugget(str(one["text"]), bool(one["vital"])) for one in found]
            for item, found in data["nuggets"].items()
        }
        nuggets, said = Nuggets(data["recipe"], by_item, data["failed"]), data["digest"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a file of nuggets ({error!r}); `qilin-tasks judge` writes one") from error
    if form != FORMAT:
        raise DataError(f"{path}: nuggets of format {form!r}, this version reads {FORMAT}: make them again")
    if said != nuggets.digest:
        raise DataError(
            f"{path}: its digest is {nuggets.digest}, and it says {said}: it was edited. Nuggets are frozen, for "
            "scores by others are not comparable; restore the file, or make a new one in another --out"
        )
    return nuggets


def check_covers(nuggets: Nuggets, answers: Sequence[Answer], *, path: Path) -> None:
    """Raises DataError where references among the answers were not there when the nuggets were made."""
    missing = {answer.item for answer in answers} - nuggets.by_item.keys() - set(nuggets.failed)
    if missing:
        raise DataError(
            f"{path} knows nothing of {len(missing)} of the references: it was made for other data or a smaller "
            "--limit. Frozen nuggets are not added to: use another --out, or a --nuggets file that was made for them"
        )
