"""The data that the chosen tasks will read, opened as they open it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from qilin_tasks.doctor.findings import Finding, failure
from qilin_tasks.dqa.documents import (
    ACTION_COLUMNS,
    ROW_COLUMNS,
    RUN_COLUMNS,
    drop_impossible_citations,
    is_answered,
    is_engaged,
)
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.sources.qilin import DEFAULT, QilinSource, open_qilin


class Size(NamedTuple):
    """Rows of the dqa config, those of them with an answer, and notes."""

    rows: int
    answers: int
    notes: int

    def __str__(self) -> str:
        return f"{self.rows} rows of dqa, {self.answers} answered, {self.notes} notes"


#: THUIR/Qilin as released.
RELEASE = Size(rows=6_972, answers=2_932, notes=1_983_938)
NOTE_COLUMNS = ("note_idx", "note_title", "note_content")


def uses_the_hub() -> bool:
    """Whether QILIN_DATA names a hub repository: then files may have to be fetched first."""
    spec = os.environ.get("QILIN_DATA") or DEFAULT
    return spec != "sample" and not Path(spec).expanduser().exists()


def dqa_data() -> list[Finding]:
    """The `dqa` and `notes` configs: layout, revision, answered rows, and which runs the release holds."""
    try:
        source = open_qilin()
        source.check({"dqa": [*ROW_COLUMNS, *_actions(source)], "notes": NOTE_COLUMNS})
        return [_rows(source)]
    except QilinTasksError as error:
        return [failure("data", error)]


def _actions(source: QilinSource) -> list[str]:
    """The columns of user actions that the copy has: only `answers: engaged` needs them."""
    return [column for column in ACTION_COLUMNS if column in source.columns("dqa")]


def _rows(source: QilinSource) -> Finding:
    answers: list[dict[str, Any]] = []
    for rows in source.iter_rows("dqa", ["dqa_output", "ref_note_idx_list", *_actions(source)]):
        answers += [row for row in rows if is_answered(row)]
    answered = len(answers)
    engaged = sum(is_engaged(row) for row in answers if len(_actions(source)) == len(ACTION_COLUMNS))
    where = source.name + (f"@{source.revision}" if source.revision else "")
    runs = [column for column in RUN_COLUMNS.values() if column in source.columns("dqa")]
    detail = (
        f"{where}: {source.row_count('dqa')} rows of dqa, {answered} answered ({engaged} with a user action), "
        f"{source.note_count()} notes, runs: {', '.join(runs) or 'none'}"
    )
    if answered == 0:
        return Finding("data", "fail", detail, "QILIN_DATA: a copy whose dqa_output holds answers, or sample")
    complaints = [
        *_other_size(source, Size(source.row_count("dqa"), answered, source.note_count())),
        *_citations(answers, source),
    ]
    if complaints:
        details, fixes = zip(*complaints, strict=True)
        return Finding("data", "warn", "; ".join([detail, *details]), "; ".join(fixes))
    return Finding("data", "ok", detail)


def _other_size(source: QilinSource, size: Size) -> list[tuple[str, str]]:
    """What differs from the release, and the way out, where the data are the hub's or a copy of them.

    A folder is taken for a copy where any of the three numbers is the release's: one's own data have none of them.
    """
    is_release = source.name == DEFAULT or any(ours == theirs for ours, theirs in zip(size, RELEASE, strict=True))
    if not is_release or size == RELEASE:
        return []
    fix = "QILIN_REVISION pins the commit that others used, or say in what you publish that the data differ"
    if source.name != DEFAULT:
        fix = "fetch the files again, or say in what you publish that the data differ"
    return [(f"the release had {RELEASE}", fix)]


def _citations(answers: list[dict[str, Any]], source: QilinSource) -> list[tuple[str, str]]:
    complaint = drop_impossible_citations(answers, note_count=source.note_count())
    return [(complaint, "the impossible ids need nothing: the cited notes go without them")] if complaint else []


def documents(name: str, task: Any) -> Finding:
    """What a loaded task asks about."""
    docs = task.eval_docs
    detail = f"{len(docs)} documents"
    if "notes" in docs.column_names and len(docs):
        shown = [len(doc["notes"]) for doc in docs]
        trimmed = sum(any(note.get("trimmed") for note in doc["notes"]) for doc in docs)
        detail += f", {sum(shown) / len(docs):.1f} notes each, {trimmed} of them with a trimmed note"
    pool = getattr(task.core.settings, "pool", None)
    if pool is not None:
        detail += f" over a pool of {pool().summary}"
    return Finding(name, "ok", detail)
