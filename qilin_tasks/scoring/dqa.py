"""Answers to per-document scores for `qilin_dqa_*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qilin_tasks.metrics.bertscore import BertScorer
from qilin_tasks.metrics.rouge_l import rouge_l_batch
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.settings import BertScoreSettings, DQASettings
from qilin_tasks.text.tokens import tokenize_chars, tokenize_jieba

ROUGE = {"rouge_l": tokenize_chars, "rouge_l_jieba": tokenize_jieba}
BERTSCORE = ("bertscore_f1", "bertscore_precision", "bertscore_recall", "bertscore_cut_rate")
COUNTS = ("answer_chars", "empty_rate", "unfinished_reasoning_rate", "notes_shown", "notes_trimmed")
METRICS = (*ROUGE, *BERTSCORE, *COUNTS)


def bert_scorer(settings: BertScoreSettings) -> BertScorer | None:
    """The scorer that the settings name, or None with `bertscore: off`."""
    if settings.bertscore == "off":
        return None
    return BertScorer(
        model=settings.bertscore_model,
        layer=settings.bertscore_layer,
        device=settings.bertscore_device,
        batch_size=settings.bertscore_batch_size,
    )


def bertscore_values(scorer: BertScorer, hypotheses: Sequence[str], references: Sequence[str]) -> list[dict[str, float]]:
    """BERTScore of each pair under the names of BERTSCORE."""
    scores = scorer.score(list(hypotheses), list(references))
    return [
        dict(zip(BERTSCORE, (f1, precision, recall, float(cut)), strict=True))
        for f1, precision, recall, cut in zip(scores.f1, scores.precision, scores.recall, scores.cut, strict=True)
    ]


def score(
    docs: Sequence[Mapping[str, Any]], responses: Sequence[str | None], settings: DQASettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document, in order; `responses` are whole outputs, reasoning included.

    ROUGE-L and BERTScore lie in [0, 1] ([-1, 1] for BERTScore in principle), rates are 0 or 1 for a document.
    """
    answers = [strip_reasoning(response) for response in responses]
    texts = [answer.text for answer in answers]
    references = [doc["reference"] for doc in docs]
    values: list[dict[str, float]] = [
        {
            "answer_chars": float(len(answer.text)),
            "empty_rate": float(not answer.text),
            "unfinished_reasoning_rate": float(answer.unfinished),
            "notes_shown": float(len(doc["notes"])),
            "notes_trimmed": float(sum(note["trimmed"] for note in doc["notes"])),
        }
        for doc, answer in zip(docs, answers, strict=True)
    ]
    for name, tokenizer in ROUGE.items():
        for row, value in zip(values, rouge_l_batch(texts, references, tokenizer=tokenizer), strict=True):
            row[name] = value
    scorer = bert_scorer(settings)
    if scorer is not None:
        for row, scores in zip(values, bertscore_values(scorer, texts, references), strict=True):
            row |= scores
    return values
