"""Inspect's log as JSON, which its viewer opens: https://inspect.aisi.org.uk/eval-logs.html."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.export.exported import Exported, answer, outputs, turns
from qilin_tasks.results.reader import Sample

VERSION = 2
_ROLES = ("system", "user", "assistant")


def file_name(one: Exported) -> str:
    """`<time>_<task>_<id>.json`, as Inspect calls its logs."""
    task = one.result.task.replace("_", "-").replace("/", "-")
    return f"{one.date.strftime('%Y-%m-%dT%H-%M-%S+00-00')}_{task}_{_id(one, 'task')}.json"


def _id(one: Exported, kind: str) -> str:
    about = f"{kind}\0{one.result.model}\0{one.result.task}\0{one.signature}\0{one.result.date!r}"
    return hashlib.sha256(about.encode()).hexdigest()[:22]


def content(one: Exported) -> str:
    """The whole log; the same result gives the same bytes."""
    return json.dumps(log(one), ensure_ascii=False, indent=1) + "\n"


def log(one: Exported) -> dict[str, Any]:
    """The log as a document."""
    result, when = one.result, one.date.isoformat()
    samples = [_sample(one, sample) for sample in one.samples()]
    arguments = dict(result.model_args) if isinstance(result.model_args, Mapping) else {}
    return {
        "version": VERSION,
        "status": "success",
        "eval": {
            "eval_id": _id(one, "eval"),
            "run_id": _id(one, "run"),
            "task_id": _id(one, "task"),
            "created": when,
            "task": result.task,
            "task_version": 0,
            "task_args": {},
            "dataset": {
                "name": one.dataset,
                "samples": len(samples),
                "sample_ids": [sample["id"] for sample in samples],
                "shuffled": False,
            },
            "model": f"{result.model_source}/{one.model_id}",
            "model_args": arguments,
            "config": {"epochs": 1},
            "packages": {"qilin_tasks": __version__, "lm_eval": result.harness_version or "unknown"},
            "metadata": {"signature": one.signature, "model_name": result.model},
        },
        "plan": {"name": "plan", "steps": [], "config": _generation(one)},
        "results": {
            "total_samples": len(samples),
            "completed_samples": len(samples),
            "scores": [_score(one, metric) for metric in one.metrics],
        },
        "stats": {"started_at": when, "completed_at": when, "model_usage": _usage(one)},
        "samples": samples,
    }


def _generation(one: Exported) -> dict[str, Any]:
    settings = one.result.generation
    named = {"temperature": "temperature", "top_p": "top_p", "max_gen_toks": "max_tokens", "until": "stop_seqs"}
    return {theirs: settings[ours] for ours, theirs in named.items() if settings.get(ours) is not None}


def _score(one: Exported, metric: str) -> dict[str, Any]:
    interval = one.interval(metric)
    numbers = {"mean": interval.value, "stderr": interval.se}
    return {
        "name": metric,
        "scorer": metric,
        "params": {},
        "metrics": {name: {"name": name, "value": value, "params": {}} for name, value in numbers.items()},
    }


def _usage(one: Exported) -> dict[str, Any]:
    cost = one.cost
    if cost is None or not cost.counted:
        return {}
    usage = {"input_tokens": cost.prompt, "output_tokens": cost.generated, "total_tokens": cost.prompt + cost.generated}
    if cost.reasoning is not None:
        usage["reasoning_tokens"] = cost.reasoning
    return {f"{one.result.model_source}/{one.model_id}": usage}


def _sample(one: Exported, sample: Sample) -> dict[str, Any]:
    asked = turns(sample.prompts[0]) if sample.prompts else []
    messages = [
        {"role": turn.role if turn.role in _ROLES else "user", "content": turn.text} for turn in asked
    ]  # fmt: skip
    given = outputs(sample)
    text = given[0] if len(given) == 1 else "\n\n".join(given)
    said = {"role": "assistant", "content": text, "source": "generate"}
    return {
        "id": sample.key,
        "epoch": 1,
        "input": messages,
        "target": sample.target,
        "messages": [*messages, said],
        "output": {
            "model": one.model_id,
            "choices": [{"message": said, "stop_reason": "unknown"}],
            "completion": text,
        },
        "scores": {
            name: {"value": value, "answer": answer(sample)} for name, value in sample.scores.items()
        },
        "metadata": {"requests": len(sample.prompts)},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }  # fmt: skip
