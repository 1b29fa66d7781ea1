"""The family of a user's own questions: DQA's documents with all references, and the folder's runs by condition."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from qilin_tasks.dqa.documents import RUN_COLUMNS, NoteShown, documents_of
from qilin_tasks.dqa.settings import RETRIEVERS, DQASettings
from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.metrics.rouge_l import check_references
from qilin_tasks.own_data.folder import language_of
from qilin_tasks.sources.qilin import QilinSource, open_qilin
from qilin_tasks.text.tokens import clean

MAKE = "qilin-tasks new-data FOLDER --from qa.jsonl"


@dataclass(frozen=True)
class OwnDataSettings(DQASettings):
    """`path` is a folder of `qilin-tasks new-data` (or any in the published layout).

    A condition shows the run that `contexts` names, else FOLDER/<condition>.parquet.
    """

    path: str | None

    def __post_init__(self) -> None:
        if self.path is None:
            raise SettingError(f"path: the folder of your data is needed: {MAKE}, then --metadata path=FOLDER")

    @property
    def folder(self) -> Path:
        """The folder that `path` names."""
        return Path(str(self.path)).expanduser()

    @property
    def context_file(self) -> str | None:
        """The run that this condition shows: the one named, else the folder's own where it holds one."""
        if (named := super().context_file) is not None or self.context not in RETRIEVERS:
            return named
        stored = self.folder / f"{self.context}.parquet"
        return str(stored) if stored.is_file() else None


class OwnDocument(TypedDict):
    """A question: `doc_key` is the row number, `reference` the first of the `references`, which all count alike."""

    doc_key: int
    question_id: str
    language: str
    query: str
    notes: list[NoteShown]
    reference: str
    references: list[str]
    engaged: bool | None


def build_own(settings: OwnDataSettings) -> list[OwnDocument]:
    """Documents of one condition. Raises DataError where the folder lacks what the condition shows."""
    if not settings.folder.is_dir():
        raise DataError(f"path {str(settings.path)!r}: no such folder; make one: {MAKE}")
    source = open_qilin(str(settings.folder))
    _check_condition(source, settings)
    language = language_of(settings.folder)
    extra = [name for name in ("question_id", "references") if name in source.columns("dqa")]
    rows = {row["row"]: row for row in source.rows("dqa", extra or ["query"])}
    documents: list[OwnDocument] = []
    for document in documents_of(settings, source):
        row = rows[document["doc_key"]]
        references = [clean(text).strip() for text in row.get("references") or ()] or [document["reference"]]
        documents.append(
            {
                "doc_key": document["doc_key"],
                "question_id": str(row.get("question_id", document["doc_key"])),
                "language": language,
                "query": document["query"],
                "notes": document["notes"],
                "reference": references[0],
                "references": references,
                "engaged": document["engaged"],
            }
        )
    pairs = [(document["question_id"], text) for document in documents for text in document["references"]]
    check_references([text for _, text in pairs], keys=[key for key, _ in pairs])
    return documents


def _check_condition(source: QilinSource, settings: OwnDataSettings) -> None:
    context, folder = settings.context, settings.folder
    if context == "oracle" and not any(row["ref_note_idx_list"] for row in source.rows("dqa", ["ref_note_idx_list"])):
        raise DataError(
            f"{folder}: no question cites a note, so custom_dqa_oracle has nothing to show: {MAKE} ('cited')"
        )
    if context not in RETRIEVERS or settings.context_file or RUN_COLUMNS.get(context) in source.columns("dqa"):
        return
    if context == "contexts":
        raise DataError(
            f"{folder}: no notes came with the questions, so custom_dqa_contexts needs a run of yours: "
            f"qilin-tasks prepare --config dqa --data {folder} --retriever NAME --out run.parquet; then "
            "--metadata contexts=run.parquet"
        )
    raise DataError(
        f"{folder}: no run for the condition {context!r}; make it once: qilin-tasks prepare --config dqa "
        f"--data {folder} --retriever {RETRIEVERS[context]} --out {folder / context}.parquet"
    )
