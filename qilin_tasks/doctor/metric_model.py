"""The metric model: there, complete, and with the layer that the settings ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qilin_tasks.doctor.findings import Finding, failure
from qilin_tasks.errors import QilinTasksError
from qilin_tasks.metrics.answer_batch import BertScoreSettings, bert_scorer


def bertscore(recipes: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """A line for each distinct BERTScore recipe among the tasks' settings; files are fetched, weights not loaded."""
    findings: dict[tuple[Any, ...], Finding] = {}
    for recipe in recipes:
        # `--metadata bertscore=…` reaches every task; those that know a model are those that score with it.
        if "bertscore_model" not in recipe:
            continue
        try:
            settings = BertScoreSettings.from_metadata(recipe)
            key = (settings.bertscore, settings.bertscore_model, settings.bertscore_layer, settings.bertscore_device)
            if key not in findings:
                findings[key] = _check(settings)
        except QilinTasksError as error:
            findings[("error", str(error))] = failure("metric model", error)
    return list(findings.values())


def _check(settings: BertScoreSettings) -> Finding:
    scorer = bert_scorer(settings)
    if scorer is None:
        return Finding("metric model", "ok", "bertscore is off, none needed")
    scorer.check()
    return Finding("metric model", "ok", f"{scorer.signature}, device {settings.bertscore_device}")
