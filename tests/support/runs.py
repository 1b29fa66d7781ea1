"""Results and samples files of the harness's shape, for tests of what reads them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def sample_line(doc: Mapping[str, Any], *, index: int, response: str, scores: Mapping[str, float]) -> dict[str, Any]:
    """One line, in the harness's key order."""
    return {
        "doc_id": index,
        "doc": dict(doc),
        "target": str(doc.get("reference", "")),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {doc.get('query', '')}", "arg_1": {"until": []}}},
        "resps": [[response]],
        "filtered_resps": [response],
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest(),
        "prompt_hash": "p",
        "target_hash": "t",
        **scores,
    }


def write_run(
    folder: Path,
    *,
    model: str,
    task: str,
    docs: Sequence[Mapping[str, Any]],
    responses: Sequence[str],
    scores: Sequence[Mapping[str, float]],
    signature: str | None = "dqa|ctx:bm25|data:d1|n:3|v:1.0",
    metadata: Mapping[str, Any] | None = None,
    source: str = "vllm",
    date: float = 1.0,
    lower_is_better: Sequence[str] = (),
    time: str = "2026-12-01T00-00-00.000000",
) -> Path:
    """A results file and its samples file in `folder`; the results file is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(scores[0])
    means = {f"{name},none": sum(row[name] for row in scores) / len(scores) for name in names}
    results = {
        "results": {task: {"name": task, "alias": task, "sample_len": len(docs), **means}},
        "group_subtasks": {},
        "configs": {
            task: {
                "task": task,
                "generation_kwargs": {"max_gen_toks": 16},
                "metadata": {"version": 1.0, **(metadata or {}), **({"signature": signature} if signature else {})},
            }
        },
        "versions": {task: 1.0},
        "n-shot": {task: 0},
        "higher_is_better": {task: {name: name not in lower_is_better for name in names}},
        "n-samples": {task: {"original": len(docs), "effective": len(docs)}},
        "config": {"model": source, "model_args": {"pretrained": model}},
        "date": date,
        "lm_eval_version": "0.4.13",
        "model_source": source,
        "model_name": model,
    }
    path = folder / f"results_{time}.json"
    path.write_text(json.dumps(results, ensure_ascii=False, indent=2), encoding="utf-8")
    with (folder / f"samples_{task}_{time}.jsonl").open("w", encoding="utf-8") as lines:
        for index, (doc, response, row) in enumerate(zip(docs, responses, scores, strict=True)):
            line = sample_line(doc, index=index, response=response, scores=row)
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return path
