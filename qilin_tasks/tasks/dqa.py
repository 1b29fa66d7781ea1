"""Qilin DQA: the loader and the task class that `lm_eval_tasks/qilin/_dqa_yaml` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import datasets

from qilin_tasks.contexts import RENDERING
from qilin_tasks.documents import build_dqa
from qilin_tasks.metrics.bertscore import bertscore_signature
from qilin_tasks.metrics.rouge_l import rouge_signature
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.scoring import dqa as scoring
from qilin_tasks.settings import DQASettings, Settings
from qilin_tasks.tasks.base import BatchScoredTask

FEATURES = datasets.Features(
    {
        "doc_key": datasets.Value("int64"),
        "search_idx": datasets.Value("int64"),
        "query": datasets.Value("string"),
        "notes": [
            {
                "note_idx": datasets.Value("int64"),
                "title": datasets.Value("string"),
                "content": datasets.Value("string"),
                "trimmed": datasets.Value("bool"),
            }
        ],
        "reference": datasets.Value("string"),
    }
)


def load(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of the YAML: documents of one condition, as the split `test`."""
    documents = build_dqa(DQASettings.from_metadata(metadata))
    return {"test": datasets.Dataset.from_list(documents, features=FEATURES)}


class DQATask(BatchScoredTask):
    """One condition of Qilin's DQA (arXiv 2503.00501, section 5.5 and Table 11)."""

    FAMILY: ClassVar[str] = "dqa"
    SETTINGS: ClassVar[type[Settings]] = DQASettings
    METRICS: ClassVar[tuple[str, ...]] = scoring.METRICS

    def prepare(self) -> None:
        scorer = scoring.bert_scorer(self.settings)
        if scorer is not None:
            scorer.check()

    def unavailable(self) -> dict[str, str]:
        off = self.settings.bertscore == "off"
        return dict.fromkeys(scoring.BERTSCORE, "bertscore is off") if off else {}

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score(docs, [response[0] for response in responses], self.settings)

    def shown_response(self, response: Any) -> str:
        return strip_reasoning(response).text

    def signature_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {
            "ctx": chosen.context,
            "k": chosen.top_k if chosen.context in ("bm25", "bert") else None,
            "note": None if chosen.context == "na" else chosen.note_chars,
            "total": None if chosen.context == "na" else chosen.context_chars,
            "answers": chosen.answers,
            "shown": None if chosen.context == "na" else RENDERING,
            "rougeL": rouge_signature("char").removeprefix("rougeL:"),
            "rougeL_jieba": rouge_signature("jieba").removeprefix("rougeL:"),
            "bertscore": bertscore_signature(model=chosen.bertscore_model, layer=chosen.bertscore_layer)
            if chosen.bertscore == "on"
            else "off",
        }
