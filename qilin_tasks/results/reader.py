"""The harness's results and samples files -> typed rows; a fault of a file is named with its path and its way out."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError
from qilin_tasks.files import UNFINISHED
from qilin_tasks.signature import GIVEN, signature_parts

NEEDED_KEYS = ("results", "configs", "n-samples", "config")
# The harness's own name of "no filter".
NO_FILTER = "none"
#: Characters of arguments that a name can bear behind it.
MOST_ARGUMENTS = 60

# Strings in JSON hold their quotes escaped, so these can only be keys.
_TAIL = b', "resps": '
_DOC_KEY = re.compile(rb'"doc": \{"doc_key": (-?\d+|"(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class TaskResult:
    """One model on one task: `values` are the aggregated metrics (`name` or `name,filter`), `n` the documents.

    `task` is the task's own name; in files of lm-eval 0.5 it stands as `entry`, behind the group's (`group::task`).
    `compare` is what a comparison noted: settings, identity, cost, the prices.
    `owner` is the folder of a merged report that it is from; "" elsewhere.
    """

    model: str
    task: str
    entry: str
    path: Path
    samples_path: Path | None
    signature: str | None
    metadata: Mapping[str, Any]
    n: int
    values: Mapping[str, float]
    errors: Mapping[str, float]
    higher_is_better: Mapping[str, bool]
    date: float
    harness_version: str
    model_source: str
    model_args: Any
    generation: Mapping[str, Any] = field(default_factory=dict)
    compare: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether a baseline of this package answered, not a language model."""
        return self.model_source == "qilin-baseline"

    @property
    def asked(self) -> bool:
        """Whether a language model was asked: a baseline and answers from elsewhere read no prompt."""
        return not self.is_baseline and GIVEN not in self.parts

    @property
    def system_parts(self) -> tuple[str, ...]:
        """The parts of the signature that a comparison set for this model alone: they belong to it."""
        return tuple(self.compare.get("system_parts", ()))

    @cached_property
    def parts(self) -> dict[str, str]:
        """The signature's parts by name; the family is under `family`."""
        return signature_parts(self.signature)


@dataclass
class Sample:
    """One line of a samples file; the document and the prompt are parsed only when asked for."""

    line: bytes
    tail: dict[str, Any]
    where: str

    @cached_property
    def _whole(self) -> dict[str, Any]:
        return _parse(self.line, self.where)

    @property
    def doc(self) -> dict[str, Any]:
        """The document, as the task's loader made it."""
        doc: dict[str, Any] = self._whole["doc"]
        return doc

    @property
    def doc_id(self) -> int:
        """Position of the document in the task's split."""
        return int(self._whole["doc_id"])

    @cached_property
    def key(self) -> int | str:
        """The document's `doc_key`, or its position where the task has none."""
        found = _DOC_KEY.search(self.line, 0, 400)
        if found:
            key: int | str = json.loads(found[1])
            return key
        key = self.doc.get("doc_key", self.doc_id)
        return key

    @property
    def raw_prompts(self) -> list[Any]:
        """What each request began with: a text, or a list with a chat as JSON."""
        arguments = self._whole.get("arguments") or {}
        requests = arguments.values() if isinstance(arguments, Mapping) else arguments
        return [r["arg_0"] if isinstance(r, Mapping) else r[0] for r in requests]

    @property
    def prompts(self) -> list[str]:
        """The text of each request."""
        return [_text(prompt) for prompt in self.raw_prompts]

    @property
    def responses(self) -> list[list[Any]]:
        """What the model gave: one list of repeats for each request."""
        responses: list[list[Any]] = self.tail["resps"]
        return responses

    @property
    def filtered(self) -> list[Any]:
        """The responses after the task's filter: for our tasks the stripped answer."""
        filtered: list[Any] = self.tail["filtered_resps"]
        # lm-eval 0.5 writes a list of repeats for each request, of one where there are no others.
        return [entry[0] if isinstance(entry, list) and len(entry) == 1 else entry for entry in filtered]

    @property
    def filter(self) -> str:
        """The filter's name."""
        return str(self.tail.get("filter", NO_FILTER))

    @property
    def target(self) -> str:
        """The reference as text."""
        return str(self._whole.get("target", ""))

    @property
    def scores(self) -> dict[str, float]:
        """The numbers among the document's metrics, named as in `TaskResult.values`."""
        found, filter_name = {}, self.filter
        for name in self.tail.get("metrics") or ():
            value = self.tail.get(name)
            if isinstance(value, (int, float)) and math.isfinite(value):
                found[_metric_name(name, filter_name)] = float(value)
        return found


def _text(argument: Any) -> str:
    """A prompt as text; the harness logs a chat as a one-element list of JSON."""
    if isinstance(argument, list) and len(argument) == 1:
        argument = argument[0]
    return argument if isinstance(argument, str) else json.dumps(argument, ensure_ascii=False)


def _metric_name(name: str, filter_name: str) -> str:
    return name if filter_name == NO_FILTER else f"{name},{filter_name}"


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error}); this is not a file of lm-eval") from error
    except ValueError as error:
        raise DataError(
            f"{where}: not a whole JSON object ({error}); the file was cut off or edited. Delete its folder and run "
            "the same compare or run command again: answers that are already stored are not asked again"
        ) from error
    if not isinstance(parsed, dict):
        raise DataError(f"{where}: {type(parsed).__name__} instead of a sample; this is not a samples file")
    return parsed


def sample_of_line(line: bytes, where: str) -> Sample:
    """One line of a samples file. Raises DataError, with `where`, for what is none."""
    start = line.rfind(_TAIL)
    # A look at the end: lines are long, a copy of each takes a tenth of the time.
    if start > 0 and line[-4:].rstrip().endswith(b"}"):
        try:
            return Sample(line, json.loads(b"{" + line[start + 2 :]), where)
        except ValueError:
            pass  # The key stood inside a document: the whole line decides.
    sample = Sample(line, {}, where)
    sample.tail = sample._whole
    missing = [key for key in ("doc", "resps", "filtered_resps") if key not in sample.tail]
    if missing:
        raise DataError(f"{where}: a sample without {', '.join(missing)}; this is not a samples file of lm-eval")
    return sample


def iter_samples(result: TaskResult) -> Iterator[Sample]:
    """The samples of a result, in file order. Raises DataError for a missing, cut-off or incomplete file."""
    path = result.samples_path
    if path is None:
        raise DataError(
            f"{result.path}: no samples file of {result.task!r} beside it; run with --log_samples "
            "(`qilin-tasks compare` always does)"
        )
    counts: Counter[str] = Counter()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.isspace():
                continue
            sample = sample_of_line(line, f"{path}, line {number}")
            counts[sample.filter] += 1
            yield sample
    for name, count in counts.items() or [(NO_FILTER, 0)]:
        if count != result.n:
            raise DataError(
                f"{path}: {count} samples (filter {name!r}), but {result.path.name} counts {result.n} documents; the "
                "file was cut off. Delete its folder and run the same compare or run command again"
            )


def read_results(path: Path) -> list[TaskResult]:
    """The tasks of one results file. Raises DataError where the file is not a results file of lm-eval."""
    where = str(path)
    data = _parse(path.read_bytes(), where)
    missing = [key for key in NEEDED_KEYS if key not in data]
    if missing:
        raise DataError(
            f"{where}: no {', '.join(map(repr, missing))}; a results file of lm-eval has them. It was written "
            f"by another version ({data.get('lm_eval_version', 'unknown')}) or tool: run the model again with this one"
        )
    groups = set(data.get("groups") or ()) | set(data.get("group_subtasks") or ())
    return [
        _task_result(data, task, path=path)
        for task in data["results"]
        if task in data["configs"] and (task not in groups or task in data["n-samples"])
    ]


def _model_name(data: Mapping[str, Any]) -> str:
    """The harness names a model without `pretrained` or `model` at random, by a fixed seed all baselines alike."""
    config = data["config"]
    arguments = config.get("model_args")
    strategy = arguments.get("strategy") if isinstance(arguments, Mapping) else None
    if strategy and config.get("model") == "qilin-baseline" and "compare" not in data:
        return str(strategy)
    return str(data.get("model_name") or config.get("model"))


def _own_name(entry: str, config: Mapping[str, Any]) -> str:
    last = entry.rpartition("::")[2]
    return last if config.get("task") == last else entry


def _task_result(data: Mapping[str, Any], task: str, *, path: Path) -> TaskResult:
    metadata = data["configs"][task].get("metadata") or {}
    values, errors = {}, {}
    for key, value in data["results"][task].items():
        name, comma, filter_name = key.partition(",")
        if not comma or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if name.endswith("_stderr"):
            errors[_metric_name(name.removesuffix("_stderr"), filter_name)] = float(value)
        else:
            values[_metric_name(name, filter_name)] = float(value)
    samples = path.with_name(f"samples_{task}_{path.stem.removeprefix('results_')}.jsonl")
    config = data["config"]
    return TaskResult(
        model=_model_name(data),
        task=_own_name(task, data["configs"][task]),
        entry=task,
        path=path,
        samples_path=samples if samples.is_file() else None,
        signature=metadata.get("signature"),
        metadata=metadata,
        n=_documents(data, task, metadata),
        values=values,
        errors=errors,
        higher_is_better={k: v for k, v in data.get("higher_is_better", {}).get(task, {}).items() if v is not None},
        date=float(data.get("date") or 0.0),
        harness_version=str(data.get("lm_eval_version", "")),
        model_source=str(data.get("model_source") or config.get("model")),
        model_args=config.get("model_args"),
        generation=data["configs"][task].get("generation_kwargs") or {},
        compare=data.get("compare") or {},
    )


def _documents(data: Mapping[str, Any], task: str, metadata: Mapping[str, Any]) -> int:
    """How many documents a task was asked.

    lm-eval 0.4.12 counts those of its last metric, which is one over a share of them where the signature has `engaged`.
    """
    counted = int(data["n-samples"][task]["effective"])
    parts = signature_parts(metadata.get("signature"))
    return max(counted, int(parts["n"])) if "engaged" in parts else counted


def _run_folder(result: TaskResult) -> Path:
    """The folder of the run: `compare` gives each task a folder in it."""
    folder = result.path.resolve().parent
    return folder.parent if folder.name == result.task else folder


def _told_apart(results: Iterable[TaskResult]) -> Iterator[TaskResult]:
    """Models of one name get behind it what tells them apart, where one of them has a task twice."""
    by_model: dict[str, list[TaskResult]] = {}
    for result in results:
        by_model.setdefault(result.model, []).append(result)
    for model, members in by_model.items():
        for result, label in zip(members, _labels(members), strict=True):
            yield replace(result, model=f"{model} ({label})") if label else result


def _labels(results: Sequence[TaskResult]) -> list[str]:
    """What tells results of one name apart: nothing, the arguments that differ, or a part of their folders' paths.

    A label stands for one model, under all the conditions that it was asked: of the parts of the paths the one that
    takes the fewest labels, from the end on; whole paths where no part does.
    """
    arguments = [_arguments(result) for result in results]

    def apart(labels: Sequence[str]) -> bool:
        tasks = {(label, result.task) for label, result in zip(labels, results, strict=True)}
        return len(tasks) == len(results)

    def whole(labels: Sequence[str]) -> bool:
        """Whether a label has one set of arguments."""
        return len({(label, str(given)) for label, given in zip(labels, arguments, strict=True)}) == len(set(labels))

    if apart(nothing := [""] * len(results)):
        return nothing
    names = dict.fromkeys(name for given in arguments for name in given)
    differing = [name for name in names if len({given.get(name) for given in arguments}) > 1]
    told = [", ".join(f"{name}={given[name]}" for name in differing if name in given) for given in arguments]
    if apart(told) and max(map(len, told)) <= MOST_ARGUMENTS:
        return told
    folders = [_run_folder(result) for result in results]
    places = range(1, min(len(folder.parts) for folder in folders))
    columns = [[folder.parts[-place] for folder in folders] for place in places]
    fitting = [labels for labels in columns if apart(labels) and whole(labels)]
    return min(fitting, key=lambda labels: len(set(labels)), default=[str(folder) for folder in folders])


def _arguments(result: TaskResult) -> dict[str, str]:
    """The model's arguments as texts, sorted by name; the harness notes them as a map or as it was given them."""
    given = result.model_args
    if isinstance(given, str):
        given = dict(part.partition("=")[::2] for part in given.split(",") if part)
    found = {str(name): str(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
    return dict(sorted({"model": result.model_source, **found}.items()))


def find_results(roots: Iterable[Path], *, faults: list[str] | None = None) -> list[TaskResult]:
    """Every (model, task) below the folders, the newest file of each run, sorted by model and task.

    Raises DataError where a folder is missing or holds no results, and where a file is damaged; with `faults`, damaged
    files are named there and left out.
    """
    roots = list(roots)
    newest: dict[tuple[Path, str, str], TaskResult] = {}
    for root in roots:
        if not root.exists():
            raise DataError(f"results folder {str(root)!r} does not exist: give the --out of a compare or run command")
        files = [root] if root.is_file() else sorted(root.rglob("results_*.json"))
        # Other folders may begin with a dot: the harness names them after the model, `./model` becomes `.__model`.
        for path in (f for f in files if not any(part.startswith(UNFINISHED) for part in f.relative_to(root).parts)):
            try:
                read = read_results(path)
            except DataError as error:
                if faults is None:
                    raise
                faults.append(f"left out: {error}")
                continue
            for result in read:
                key = (_run_folder(result), result.model, result.task)
                known = newest.get(key)
                if known is None or (result.date, result.path.name) >= (known.date, known.path.name):
                    newest[key] = result
    if not newest:
        raise DataError(
            f"no results_*.json below {', '.join(repr(str(root)) for root in roots)}: give the --out of a compare or "
            "run command"
        )
    return sorted(_told_apart(newest.values()), key=lambda result: (result.model, result.task))
