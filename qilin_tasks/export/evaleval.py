"""Every Eval Ever (schema 0.3.0): one file a result, and its samples beside it.

https://github.com/evaleval/every_eval_ever, `eval.schema.json` and `instance_level_eval.schema.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.export.exported import Exported, answer, outputs, question
from qilin_tasks.harness.backends import BACKENDS

SCHEMA = "0.3.0"
COLLECTION = "qilin-tasks"


def files(one: Exported, *, organization: str, relationship: str) -> dict[PurePosixPath, str]:
    """The two files of a result by their place in the datastore's tree; the same result gives the same bytes."""
    log, rows = evaluation(one, organization=organization, relationship=relationship)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    samples = samples_path(one)
    log["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": str(samples),
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(lines.encode()).hexdigest(),
        "total_rows": lines.count("\n"),
    }
    whole = samples.with_name(samples.name.replace("_samples.jsonl", ".json"))
    return {whole: json.dumps(log, ensure_ascii=False, indent=2) + "\n", samples: lines}


def samples_path(one: Exported) -> PurePosixPath:
    """`data/<collection>/<developer>/<model>/<uuid>_samples.jsonl`, the id made of what the result is."""
    about = f"{one.result.model}\0{one.result.task}\0{one.signature}\0{one.result.date!r}"
    name = uuid.UUID(bytes=hashlib.sha256(about.encode()).digest()[:16], version=4)
    developer, _, model = one.model_id.rpartition("/")
    folder = PurePosixPath("data", COLLECTION, _part(developer) or "unknown", _part(model) or "unknown")
    return folder / f"{name}_samples.jsonl"


def _part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")


def evaluation(
    one: Exported, *, organization: str, relationship: str
) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The aggregate document, and a row for each sample under the headline metric."""
    result = one.result
    stamp = f"{result.date:.0f}"
    identity = f"{result.task}/{one.model_id}/{stamp}"
    developer, slash, _ = one.model_id.rpartition("/")
    backend = BACKENDS.get(result.model_source)
    hosted = result.model_source.startswith("openai-")
    deployment = "self_deployed" if backend and backend.local else "externally_managed" if hosted else "unknown"
    log: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "qilin-tasks",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": "lm_eval",
            "version": result.harness_version or "unknown",
            "additional_details": {"plugin": "qilin-tasks", "plugin_version": __version__, "signature": one.signature},
        },
        "model_info": {
            "name": result.model,
            "id": one.model_id,
            **({"developer": developer} if slash else {}),
            "inference_engine": {"name": result.model_source},
            "additional_details": {
                "deployment_type": deployment,
                "model_availability": "open_weights" if backend and backend.local and slash else "unknown",
            },
        },
        "evaluation_results": [_metric(one, metric, identity) for metric in one.metrics],
    }
    return log, _rows(one, identity)


def _metric(one: Exported, metric: str, identity: str) -> dict[str, Any]:
    interval, lower = one.interval(metric), one.lower_is_better(metric)
    bounds = one.bounds(metric)
    about: dict[str, str] = {"signature": one.signature}
    if lower is None:
        about["direction"] = "neither: a description, not a quality"
    source: dict[str, Any] = {"dataset_name": one.dataset, "source_type": "other"}
    if one.on_hub:
        source |= {"source_type": "hf_dataset", "hf_repo": one.dataset, "samples_number": interval.n}
    scale = {"score_type": "continuous", "min_score": bounds[0], "max_score": bounds[1]} if bounds else {}
    return {
        "evaluation_result_id": f"{identity}/{metric}",
        "evaluation_name": one.result.task,
        "source_data": source,
        "metric_config": {
            "metric_id": metric,
            "metric_name": metric,
            "lower_is_better": bool(lower),
            **scale,
            "additional_details": about,
        },
        "score_details": {
            "score": interval.value,
            "uncertainty": {
                "standard_error": {"value": interval.se, "method": "analytic, clustered by paragraph where known"},
                "confidence_interval": {
                    "lower": interval.low, "upper": interval.high, "confidence_level": 0.95, "method": "Student's t",
                },
                "num_samples": interval.n,
            },
        },
        **_generation(one),
    }  # fmt: skip


def _generation(one: Exported) -> dict[str, Any]:
    settings = one.result.generation
    known = {"temperature": settings.get("temperature"), "top_p": settings.get("top_p")}
    arguments = {name: value for name, value in known.items() if isinstance(value, (int, float))}
    longest = settings.get("max_gen_toks") or settings.get("max_tokens")
    if isinstance(longest, int) and longest > 0:
        arguments["max_tokens"] = longest
    return {"generation_config": {"generation_args": arguments}} if arguments else {}


def _rows(one: Exported, identity: str) -> Iterator[dict[str, Any]]:
    metric = one.metrics[0]
    best = one.bounds(metric)
    for sample in one.samples():
        score = sample.scores.get(metric)
        if score is None:
            continue
        raw, reference = question(sample), [sample.target]
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": identity,
            "model_id": one.model_id,
            "evaluation_name": one.result.task,
            "evaluation_result_id": f"{identity}/{metric}",
            "sample_id": str(sample.key),
            "sample_hash": hashlib.sha256((raw + "".join(reference)).encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": raw, "formatted": "\n\n".join(sample.prompts), "reference": reference},
            "output": {"raw": outputs(sample)},
            "messages": None,
            "answer_attribution": [
                {
                    "turn_idx": 0, "source": "output.raw", "extracted_value": answer(sample),
                    "extraction_method": "custom", "is_terminal": True,
                }
            ],
            # A graded metric is "correct" at its best value only.
            "evaluation": {"score": score, "is_correct": best is not None and score >= best[1]},
            "metadata": {name: repr(value) for name, value in sample.scores.items()},
        }  # fmt: skip
