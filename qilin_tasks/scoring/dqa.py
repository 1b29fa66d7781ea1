"""Answers to per-document scores for `qilin_dqa_*`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qilin_tasks.metrics.answer import answer_chars, empty_rate, unfinished_reasoning_rate
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


def bertscore_columns(
    scorer: BertScorer, hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, list[float]]:
    """BERTScore of the pairs under the names of BERTSCORE."""
    scores = scorer.score(list(hypotheses), list(references))
    return dict(zip(BERTSCORE, (scores.f1, scores.precision, scores.recall, list(map(float, scores.cut))), strict=True))


def score(
    docs: Sequence[Mapping[str, Any]], responses: Sequence[str | None], settings: DQASettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document, in order; `responses` are whole outputs, reasoning included.

    ROUGE-L and BERTScore are 1 for the reference itself and 0 for an empty answer; a rate is 0 or 1 for a document.
    """
    answers = [strip_reasoning(response) for response in responses]
    texts = [answer.text for answer in answers]
    references = [doc["reference"] for doc in docs]
    scorer = bert_scorer(settings)
    columns: dict[str, list[float]] = {
        **{name: rouge_l_batch(texts, references, tokenizer=tokenizer) for name, tokenizer in ROUGE.items()},
        **(bertscore_columns(scorer, texts, references) if scorer is not None else {}),
        "answer_chars": answer_chars(texts),
        "empty_rate": empty_rate(texts),
        "unfinished_reasoning_rate": unfinished_reasoning_rate([answer.unfinished for answer in answers]),
        "notes_shown": [float(len(doc["notes"])) for doc in docs],
        "notes_trimmed": [float(sum(note["trimmed"] for note in doc["notes"])) for doc in docs],
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
