"""The covers that tasks with images will show: what is missing here, by part of the archive, and where to get it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from qilin_tasks.doctor.findings import Finding, failure
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.families import FAMILIES
from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.images import VARIABLE, CoverSurvey, images_root, shows_images, survey_covers
from qilin_tasks.ranking.settings import GradedVisionSettings, RankingSettings, VisionSettings

#: Parts of the image archive that users could not unpack: so RED-Search/Qilin issue 7 on 2025-05-27, where the authors
#: say on 2025-05-31 that they are mended. A copy from before has to be fetched again.
REPORTED_BROKEN = ("part_7", "part_48", "part_73")
#: The link of the repository's README is dead (issue 13, 2026-02-26); the authors posted another there on 2026-03-29.
SOURCE = "https://github.com/RED-Search/Qilin/issues/13"
_NAMED = 8


def covers(recipes: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """One line for all tasks among the recipes that show covers; none where no task does."""
    chosen = [recipe for recipe in recipes if _settings_of(recipe) in (VisionSettings, GradedVisionSettings)]
    if not chosen:
        return []
    get = f"the authors posted the archive last in {SOURCE}; unpack it and set {VARIABLE} to the folder it is in"
    if not shows_images():
        return [Finding("images", "warn", f"{VARIABLE} is not set, so no cover can be shown", get)]
    try:
        root = images_root()
        wanted = {path for recipe in chosen for path in _wanted(recipe)}
        return [finding(survey_covers(wanted, root=root))]
    except QilinTasksError as error:
        return [failure("images", error)]


def finding(survey: CoverSurvey) -> Finding:
    """How many covers can't be used, by part of the archive, and which of these parts were reported broken."""
    wanted = len(survey.usable) + len(survey.missing) + len(survey.broken)
    detail = f"{len(survey.usable)} of {wanted} covers can be opened"
    lost = [*survey.missing, *survey.broken]
    if not lost:
        return Finding("images", "ok", detail)
    detail += f", {len(survey.missing)} are missing and {len(survey.broken)} broken"
    parts = Counter(map(part_of, lost))
    whole = Counter(map(part_of, [*survey.usable, *lost]))
    shown = [f"{part} ({number} of {whole[part]})" for part, number in parts.most_common(_NAMED)]
    detail += f": {', '.join(shown)}" + (f" and {len(parts) - _NAMED} other parts" if len(parts) > _NAMED else "")
    fix = f"unpack these parts again; the authors posted the archive last in {SOURCE}"
    if reported := [part for part in REPORTED_BROKEN if part in parts]:
        fix += (
            f"; copies of {', '.join(reported)} from before 2025-05-31 could not be unpacked (RED-Search/Qilin issue "
            "7): fetch them again"
        )
    return Finding("images", "warn" if survey.usable else "fail", detail, fix)


def part_of(path: str) -> str:
    """The part of the archive that a path lies in.

    >>> part_of("image/part_114/1145271/5122187.jpg"), part_of("cover.jpg")
    ('part_114', 'outside of any part')
    """
    return next((name for name in PurePosixPath(path).parts if name.startswith("part_")), "outside of any part")


def _settings_of(recipe: Mapping[str, Any]) -> type | None:
    found = FAMILIES.get(str(recipe.get("family")))
    return None if found is None else found.settings


def _wanted(recipe: Mapping[str, Any]) -> Iterable[str]:
    """The covers that a task would show."""
    settings = FAMILIES[str(recipe["family"])].settings.from_metadata(recipe)
    if not isinstance(settings, RankingSettings):
        raise TypeError(f"{type(settings).__name__} is no setting of a ranking")
    for doc in build_ranking(settings, images=True):
        yield from (note["image"] for note in doc["candidates"] if note["image"])
        if isinstance(settings, GradedVisionSettings):
            yield from filter(None, doc["history_images"])
