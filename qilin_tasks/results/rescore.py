"""All metrics again from the samples, without a model: the task's own scoring over the stored responses."""

from __future__ import annotations

import datetime
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qilin_tasks import __version__
from qilin_tasks.errors import SettingError
from qilin_tasks.families import family, metric_rows, scoring_names
from qilin_tasks.family import Scorer
from qilin_tasks.files import Together
from qilin_tasks.metrics.metric import Metric
from qilin_tasks.metrics.own import OwnMetric, own_part
from qilin_tasks.parsing.answers import REFUSED_RATE
from qilin_tasks.repeats import WithOwn, score_repeats
from qilin_tasks.results.asides import asides, responses_of
from qilin_tasks.results.reader import Sample, TaskResult, iter_samples, read_results
from qilin_tasks.signature import GIVEN, signature

#: Parts of a signature that describe the prompts and the data: a rescored result keeps them.
KEPT_PARTS = (
    "prompt", "gen", "repeats", "shots", "chat", "system", "refs", "data", "engaged", "n", "samples", "v", GIVEN,
)  # fmt: skip


@dataclass(frozen=True)
class Rescored:
    """What came of one result: the new file, and every metric before (None where it is new) and after."""

    result: TaskResult
    path: Path
    changes: dict[str, tuple[float | None, float]]


def settings_for(result: TaskResult, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a result with changed scoring settings. Raises SettingError where a prompt would change."""
    may_change = scoring_names()
    for key in changes:
        if key not in may_change:
            raise SettingError(
                f"setting {key!r}: the prompts of {result.task} were made with it, so the model has to be asked again; "
                f"what can change here: {', '.join(may_change)}"
            )
    return {**result.metadata, **changes}


def rescore(
    result: TaskResult, changes: Mapping[str, Any], own: Mapping[str, OwnMetric] | None = None, *, into: Together
) -> Rescored:
    """Score one result again; new files beside the old ones, which stay, appear with all others of `into`.

    `own` are the user's own metrics, from the task's YAML: a results file never says what code to run.
    Raises SettingError for a task without our signature, DataError for a damaged samples file, and whatever the metrics
    raise; nothing is written then.
    """
    name = result.parts.get("family")
    if name is None:
        raise SettingError(
            f"{result.path}: task {result.task!r} carries no signature of qilin-tasks, so its scoring isn't known; "
            "rescore takes results of our tasks only"
        )
    found = family(name, where=f"task {result.task!r}")
    own = own or {}
    if "own" in result.parts and not own:
        theirs = ", ".join(part.partition("@")[0] for part in result.parts["own"].split(","))
        raise SettingError(
            f"{result.path}: {result.task} has metrics of its own ({theirs}): --include_path FOLDER of its YAML"
        )
    metadata = settings_for(result, changes)
    before = found.scorer(found.settings.from_metadata(result.metadata))
    scorer = found.scorer(found.settings.from_metadata(metadata))
    scorer.check()
    by_filter: dict[str, list[Sample]] = defaultdict(list)
    for sample in iter_samples(result):
        by_filter[sample.filter].append(sample)
    samples = next(iter(by_filter.values()))
    docs = [sample.doc for sample in samples]
    targets = {sample.key: sample.target for sample in samples}
    field = str(_config(result).get("doc_to_target"))

    def target(doc: Mapping[str, Any]) -> Any:
        # The file holds the target as text; a document's own field keeps its kind.
        return doc[field] if field in doc else targets[doc["doc_key"]]

    scored = score_repeats(WithOwn(scorer, own, target), docs, [responses_of(sample) for sample in samples])
    # The YAML may list fewer metrics than the family has; what the old settings had switched off may come now, and
    # answers that came without metrics (`--predict_only`) get all of them.
    shown = {*result.values, *before.unavailable(), *own} if _has_metrics(result) else {*scorer.METRICS, *own}
    names = [name for name in dict.fromkeys(name for row in scored.values for name in row) if name in shown]
    metadata["signature"] = _signature(name, scorer, result, own)
    if scored.variance is not None:
        metadata["variance"] = scored.variance
    values = {
        sample.key: {name: row[name] for name in names if name in row}
        for sample, row in zip(samples, scored.values, strict=True)
    }
    if REFUSED_RATE in result.values:
        names.append(REFUSED_RATE)
        for sample in samples:
            values[sample.key][REFUSED_RATE] = sample.scores.get(REFUSED_RATE, 0.0)
    columns = {sample.key: row for sample, row in zip(samples, asides(scorer, samples), strict=True)}
    return _write(result, by_filter, values, columns, names=names, metadata=metadata, own=own, into=into)


def _config(result: TaskResult) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(result.path.read_text(encoding="utf-8"))["configs"][result.entry]
    return config


def _has_metrics(result: TaskResult) -> bool:
    """Not with `--predict_only`, which puts one metric of its own in the place of all."""
    return any(name != "bypass" for name in result.values)


def _signature(family_name: str, scorer: Scorer[Any, Any], result: TaskResult, own: Mapping[str, OwnMetric]) -> str:
    kept = {key: result.parts[key] for key in KEPT_PARTS if key in result.parts}
    parts = {**scorer.signature_parts(), "own": own_part(own), **kept, "code": __version__}
    return signature(family_name, parts)


def _write(
    result: TaskResult,
    by_filter: Mapping[str, Sequence[Sample]],
    values: Mapping[int | str, Mapping[str, float]],
    columns: Mapping[int | str, Mapping[str, float]],
    *,
    names: Sequence[str],
    metadata: Mapping[str, Any],
    own: Mapping[str, OwnMetric],
    into: Together,
) -> Rescored:
    now = datetime.datetime.now()
    stamp = now.isoformat().replace(":", "-")
    data = json.loads(result.path.read_text(encoding="utf-8"))
    for key in ("results", "configs", "versions", "n-shot", "n-samples", "task_hashes"):
        data[key] = {name: value for name, value in data.get(key, {}).items() if name == result.entry}
    for key in ("groups", "group_subtasks"):
        data[key] = {}
    table: dict[str, Metric[Any] | OwnMetric] = {**metric_rows(result.parts["family"]), **own}
    data["higher_is_better"] = {
        result.entry: {name: table[name].higher_is_better if name in table else False for name in names}
    }
    config = data["configs"][result.entry]
    config["metadata"] = dict(metadata)
    config["metric_list"] = [
        {"metric": name, "aggregation": "mean", "higher_is_better": data["higher_is_better"][result.entry][name]}
        for name in names
    ]
    old = data["results"][result.entry]
    data["results"][result.entry] = {key: value for key, value in old.items() if "," not in key}
    for filter_name, samples in by_filter.items():
        for name in names:
            scores = (values[sample.key].get(name) for sample in samples)
            column = np.array([score for score in scores if score is not None])
            error = float(column.std(ddof=1) / math.sqrt(len(column))) if len(column) > 1 else "N/A"
            data["results"][result.entry][f"{name},{filter_name}"] = float(column.mean())
            data["results"][result.entry][f"{name}_stderr,{filter_name}"] = error
    data["date"] = now.timestamp()
    data["rescored_from"] = result.path.name
    lines = (
        json.dumps({**_line(sample, values[sample.key], names=names), **columns[sample.key]}, ensure_ascii=False)
        for samples in by_filter.values()
        for sample in samples
    )
    # The results file last: a results file never stands without its samples.
    into.write(result.path.with_name(f"samples_{result.entry}_{stamp}.jsonl"), "\n".join(lines) + "\n")
    path = result.path.with_name(f"results_{stamp}.json")
    into.write(path, json.dumps(data, ensure_ascii=False, indent=2))
    first = next(iter(by_filter))
    new = data["results"][result.entry]
    return Rescored(result, path, {name: (result.values.get(name), new[f"{name},{first}"]) for name in names})


def _line(sample: Sample, values: Mapping[str, float], *, names: Sequence[str]) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(sample.line)
    for name in line.pop("metrics"):
        line.pop(name, None)
    return {**line, "metrics": [name for name in names if name in values], **values}


def original(result: TaskResult) -> TaskResult:
    """The result that a model's answers came in, where `result` was rescored from it itself."""
    data = json.loads(result.path.read_text(encoding="utf-8"))
    first = data.get("rescored_from")
    if first is None:
        return result
    found = next(r for r in read_results(result.path.with_name(first)) if r.task == result.task)
    return original(found)
