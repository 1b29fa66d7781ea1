"""The rows of search and recommendation: do their clicks fit the official labels, and which clicks are recent ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qilin_tasks.doctor.findings import Finding, failure
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.families import FAMILIES
from qilin_tasks.ranking.history_order import read_history_order
from qilin_tasks.ranking.qrels_check import check_qrels
from qilin_tasks.ranking.requests import read_requests
from qilin_tasks.ranking.settings import RankingSettings
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.runs import read_qrels

OFFICIAL = {"search_test": "search.test.qrels.csv", "recommendation_test": "recommendation.test.qrels.csv"}


def ranking_data(recipes: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Lines on the labels of each config that the tasks rank, and on the order of the clicks in recommendation."""
    chosen: dict[tuple[str, int | None, str | None], RankingSettings] = {}
    findings = []
    for recipe in recipes:
        family = FAMILIES.get(str(recipe.get("family")))
        if family is None or not issubclass(family.settings, RankingSettings):
            continue
        try:
            settings = family.settings.from_metadata(recipe)
        except QilinTasksError:
            continue  # the task's own line has it
        chosen.setdefault((settings.config, settings.rows, settings.qrels), settings)
    for settings in chosen.values():
        findings.append(_labels(settings))
    if any(settings.config == "recommendation_test" for settings in chosen.values()):
        findings.append(_recent_clicks())
    return findings


def _labels(settings: RankingSettings) -> Finding:
    check = f"labels of {settings.config}"
    if settings.qrels is None:
        file = OFFICIAL[settings.config]
        return Finding(
            check, "ok", f"the rows' own clicks; --metadata qrels={file} compares them with the official file"
        )
    try:
        requests = read_requests(open_qilin(), settings.config, rows=settings.rows)
        differing = check_qrels(requests, read_qrels(settings.qrels), where=settings.qrels)
    except QilinTasksError as error:
        return failure(check, error)
    detail = f"the clicks of {len(requests) - differing} of {len(requests)} requests are those of {settings.qrels}"
    return Finding(check, "warn" if differing else "ok", detail, "the rows' clicks are used" if differing else "")


def _recent_clicks() -> Finding:
    check = "recent clicks"
    try:
        source = open_qilin()
        if "user_idx" not in source.columns("recommendation_test"):
            return Finding(check, "ok", "user_idx is not there: which end is recent can't be read")
        order = read_history_order(source, "recommendation_test")
    except QilinTasksError as error:
        return failure(check, error)
    told = (
        f"{order.first} pairs of a user's requests move at the first end of recent_clicked_note_idxs, "
        f"{order.last} at the last"
    )
    if order.recent == "last":
        fix = "tasks show the first `history` notes, as the official code does; the default of 20 shows all of them"
        return Finding(check, "warn", f"{told}: the last notes are the recent ones in this copy", fix)
    if order.recent == "first":
        return Finding(check, "ok", f"{told}: the first notes, which tasks show, are the recent ones")
    return Finding(
        check, "ok", f"{told}: which end is recent can't be told; tasks show the first, as the official code does"
    )
