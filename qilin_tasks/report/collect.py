"""Results and samples -> boards: tasks that belong side by side (one task under several contexts), with their rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qilin_tasks.errors import DataError
from qilin_tasks.families import metric_rows
from qilin_tasks.metrics.metric import headlines
from qilin_tasks.report.variants import beside_models, difference, reference_signature
from qilin_tasks.results.reader import Sample, TaskResult, iter_samples
from qilin_tasks.results.scores import Scores, cluster_of, collect

#: Conditions in the order of the paper's Table 11; others follow by name.
CONDITION_ORDER = ("na", "bm25", "bert", "dense", "oracle")
#: The family of rankings that a file holds.
RUNS = "qilin-run"
MOST_OUTPUT_CHARS = 20_000
_QUERIES = ("query", "question", "input", "text", "problem")
_PASSAGES = ("notes", "passages", "candidates", "context", "contexts", "choices")
_REFERENCES = ("references", "reference", "answers", "answer", "gold")


@dataclass(frozen=True)
class Document:
    """What the sample browser shows of a document: the query, (title, text) passages, the reference."""

    query: str
    passages: tuple[tuple[str, str], ...]
    reference: str


@dataclass(frozen=True, eq=False)
class Row:
    """One model on one task: scores, raw outputs, and stripped answers (None where equal); all in `scores.keys` order.

    `problem` says why the row is not compared with the others; "" where it is.
    """

    scores: Scores
    outputs: list[str]
    answers: list[str | None]
    problem: str = ""

    @property
    def result(self) -> TaskResult:
        """The results file's side of it."""
        return self.scores.result


@dataclass(frozen=True, eq=False)
class Column:
    """One task of a board: its condition, its documents by key, its rows."""

    task: str
    condition: str
    signature: str | None
    documents: dict[int | str, Document]
    rows: list[Row]

    @property
    def compared(self) -> list[Row]:
        """Rows whose numbers mean the same."""
        return [row for row in self.rows if not row.problem]


@dataclass(frozen=True, eq=False)
class Board:
    """Tasks side by side; `metrics` in the task's order; `higher_is_better` is None where no direction is better."""

    name: str
    columns: list[Column]
    metrics: list[str]
    higher_is_better: dict[str, bool | None]
    warnings: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[str]:
        """Every model of the board, language models first, each kind by name."""
        found = {row.result.model: row.result.is_baseline for column in self.columns for row in column.rows}
        return sorted(found, key=lambda model: (found[model], model.lower()))

    @property
    def baselines(self) -> set[str]:
        """The rows that no language model answered."""
        return {row.result.model for column in self.columns for row in column.rows if row.result.is_baseline}

    def row(self, column: Column, model: str) -> Row | None:
        """A model's row of a column."""
        return next((row for row in column.rows if row.result.model == model), None)

    def headline(self) -> list[str]:
        """What models are compared by, three at most: the task's first metric, then its family's headlines.

        Of a task that is not ours, its first two.
        """
        families = [row.result.parts.get("family", "") for column in self.columns for row in column.rows]
        table = metric_rows(families[0]) if families else {}
        chosen = [*self.metrics[:1], *(headlines(table) if table else self.metrics[:2])]
        return [name for name in dict.fromkeys(chosen) if name in self.metrics][:3]


def condition_of(result: TaskResult) -> str:
    """The context that a task's prompt shows; "" for tasks without conditions."""
    return str(result.metadata.get("context") or "")


def board_of(result: TaskResult) -> str:
    """The board's name: the task without its condition."""
    condition = condition_of(result)
    return result.task.removesuffix(f"_{condition}") if condition else result.task


def boards_of(
    results: Sequence[TaskResult], *, faults: list[str] | None = None, say: Callable[[str], None] = lambda text: None
) -> list[Board]:
    """Read all samples and arrange them; `say` gets a line before each task.

    Raises DataError for a damaged samples file; with `faults`, it is named there and left out.
    """
    by_board: dict[str, dict[str, list[TaskResult]]] = {}
    placed, notes = beside_models(results)
    for result in placed:
        by_board.setdefault(board_of(result), {}).setdefault(result.task, []).append(result)
    boards = []
    made: dict[str, list[Column]] = {}
    for name, tasks in sorted(by_board.items()):
        for task, members in tasks.items():
            say(f"reading {task}, {len(members)} results")
            column = _column(task, members, faults)
            if column.rows:
                made.setdefault(name, []).append(column)
    _put_runs_beside([column for columns in made.values() for column in columns], notes)
    for name, columns in made.items():
        order = {condition: i for i, condition in enumerate(CONDITION_ORDER)}
        columns.sort(key=lambda column: (order.get(column.condition, len(order)), column.condition))
        rows = [row for column in columns for row in column.rows]
        metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores.values))
        better: dict[str, bool | None] = {m: v for row in rows for m, v in row.result.higher_is_better.items()}
        # What the table says of our metrics goes over what an older file wrote.
        for row in rows:
            better |= {
                m: known.higher_is_better for m, known in metric_rows(row.result.parts.get("family", "")).items()
            }
        warnings = [note for column in columns for note in notes.get(column.task, ())]
        warnings += [
            f"{column.task}, {row.result.model}: {row.problem}"
            for column in columns
            for row in column.rows
            if row.problem
        ]
        boards.append(Board(name, columns, metrics, {m: better.get(m) for m in metrics}, warnings))
    return boards


def _put_runs_beside(columns: Sequence[Column], notes: dict[str, list[str]]) -> None:
    """Rankings of other systems (`rank`, `score`) stand beside those of models, where both ranked the same requests.

    Where they did not, `notes` says so.
    """

    def config(column: Column) -> object:
        return column.rows[0].result.metadata.get("config")

    def family(column: Column) -> str:
        return column.rows[0].result.parts.get("family", "")

    runs = [column for column in columns if family(column) == RUNS]
    for column in columns:
        if not family(column).startswith("qilin-") or family(column) == RUNS:
            continue
        asked = column.documents.keys()
        for row in [row for other in runs if config(other) == config(column) for row in other.compared]:
            if set(row.scores.keys) == asked:
                column.rows.append(row)
                continue
            both = len(asked & set(row.scores.keys))
            notes.setdefault(column.task, []).append(
                f"{row.result.model} is not beside {column.task}: of its {len(row.scores.keys):,} requests the models "
                f"were asked {both:,}, and {len(asked) - both:,} others"
            )


#: What documents of one data fingerprint are clustered by.
_Clusters = dict[Hashable, dict[int | str, Hashable | None]]


def _column(task: str, results: Sequence[TaskResult], faults: list[str] | None) -> Column:
    documents: dict[int | str, Document] = {}
    seen: _Clusters = {}
    rows = []
    for result in results:
        try:
            rows.append(_row(result, documents, seen))
        except DataError as error:
            if faults is None:
                raise
            faults.append(f"{result.model} {result.task} left out: {error}")
    signature = reference_signature([row.result for row in rows]) if rows else None
    # What any model of a comparison brings along of its own is a part of each system, and no other question.
    systems = {part for row in rows for part in row.result.system_parts}
    judged = [
        Row(row.scores, row.outputs, row.answers, difference(row.result, signature, systems=systems))
        if row.result.signature != signature
        else row
        for row in rows
    ]
    return Column(task, condition_of(results[0]), signature, documents, judged)


def _row(result: TaskResult, documents: dict[int | str, Document], seen: _Clusters) -> Row:
    """The samples of a result; documents and clusters that are new are put to the others once all could be read.

    Documents are parsed once for each data fingerprint: that is most of a samples file. Raises DataError for a file
    that can't be read to its end.
    """
    if not set(result.values) - {"bypass"}:
        raise DataError(
            f"{result.path} holds answers without metrics (--predict_only): qilin-tasks rescore "
            f"{result.path.parent} computes them, without a model"
        )
    data = (result.parts.get("data"), result.n) if result.signature else object()
    clusters = seen.get(data)
    entries: list[tuple[int | str, Hashable | None, dict[str, float]]] = []
    outputs: dict[int | str, str] = {}
    answers: dict[int | str, str | None] = {}
    found: dict[int | str, Hashable | None] = {}
    new: dict[int | str, Document] = {}
    for sample in iter_samples(result):
        key = sample.key
        if clusters is None:
            found[key] = cluster_of(sample)
            if key not in documents and key not in new:
                new[key] = shown_document(sample.doc, sample.target)
        entries.append((key, (clusters or found).get(key), sample.scores))
        if key not in outputs:
            outputs[key], answers[key] = shown_output(sample)
    if clusters is None:
        seen[data] = found
    documents |= new
    scores = collect(result, entries)
    return Row(scores, [outputs[key] for key in scores.keys], [answers[key] for key in scores.keys])


def shown_output(sample: Sample) -> tuple[str, str | None]:
    """The raw output of a document's requests, and its stripped answer (None where that is the same)."""
    parts = [_response_text(repeats[0]) if repeats else "" for repeats in sample.responses]
    joiner = ", " if sample.responses and sample.responses[0] and isinstance(sample.responses[0][0], list) else "\n⁂\n"
    raw = joiner.join(parts)[:MOST_OUTPUT_CHARS]
    filtered = sample.filtered
    answer = "\n⁂\n".join(str(part) for part in filtered) if joiner != ", " else raw
    return raw, (None if answer == raw else answer[:MOST_OUTPUT_CHARS])


def _response_text(response: Any) -> str:
    if isinstance(response, list):
        try:
            return f"{float(response[0]):.3f}"
        except (ValueError, IndexError):
            return str(response)
    return str(response)


def shown_document(doc: Mapping[str, Any], target: str) -> Document:
    """The parts of a document that people look at, under the names that our tasks and common others use."""
    query = next((doc[name] for name in _QUERIES if isinstance(doc.get(name), str)), "")
    passages = next((doc[name] for name in _PASSAGES if doc.get(name)), ())
    if isinstance(passages, str):
        passages = [passages]
    reference = next((doc[name] for name in _REFERENCES if doc.get(name)), target)
    if isinstance(reference, (list, tuple)):
        reference = " ⏐ ".join(str(part) for part in reference)
    shown = tuple(_passage(p) for p in passages) if isinstance(passages, (list, tuple)) else ()
    return Document(str(query), shown, str(reference))


def _passage(passage: Any) -> tuple[str, str]:
    if isinstance(passage, Mapping):
        return str(passage.get("title") or ""), str(passage.get("content") or passage.get("text") or "")
    return "", str(passage)


def common_keys(rows: Sequence[Row]) -> list[int | str]:
    """Documents that every row has, in the first row's order."""
    if not rows:
        return []
    shared = set(rows[0].scores.keys).intersection(*(row.scores.keys for row in rows[1:]))
    return [key for key in rows[0].scores.keys if key in shared]


def over_all(row: Row, metric: str, keys: Sequence[int | str]) -> Any:
    """As `aligned`, over documents of which the row may lack some: NaN there."""
    values = row.scores.values[metric]
    if row.scores.keys == keys:
        return values
    by_key = dict(zip(row.scores.keys, values.tolist(), strict=True))
    return np.array([by_key.get(key, np.nan) for key in keys], dtype=np.float64)


def aligned(row: Row, metric: str, keys: Sequence[int | str]) -> Any:
    """A row's values of a metric for the given documents, shape (documents,)."""
    values = row.scores.values[metric]
    if row.scores.keys == keys:
        return values
    position = {key: i for i, key in enumerate(row.scores.keys)}
    return values[np.array([position[key] for key in keys])]
