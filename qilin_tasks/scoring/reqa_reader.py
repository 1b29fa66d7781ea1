"""Responses to per-document scores for the readers of ReQA: EM, F1, ROUGE-L, METEOR, BERTScore F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qilin_tasks.metrics.meteor import meteor
from qilin_tasks.metrics.rouge_l import rouge_l_batch
from qilin_tasks.metrics.squad import Tokenizer, exact_match, token_f1
from qilin_tasks.parsing.answers import Answer, strip_reasoning
from qilin_tasks.scoring.dqa import bert_scorer
from qilin_tasks.scoring.reqa_settings import ReaderSettings
from qilin_tasks.text.tokens import tokenize_chars

Document = Mapping[str, Any]

ALWAYS = ("em", "f1", "rouge_l")
METEOR = ("meteor",)
BERTSCORE = ("bertscore_f1",)
COUNTS = ("answer_shown", "empty_rate", "unfinished_reasoning_rate")
METRICS = (*ALWAYS, *METEOR, *BERTSCORE, *COUNTS)


def f1_tokenizer(language: str) -> Tokenizer:
    """SQuAD's own tokens (between spaces) for English; characters for Chinese and Thai, which write no spaces."""
    return str.split if language == "en" else tokenize_chars


def meteor_synonyms(language: str) -> str:
    """WordNet for English; there is none here for Chinese and Thai, where METEOR compares tokens only."""
    return "wordnet" if language == "en" else "none"


def score(
    docs: Sequence[Document], responses: Sequence[str | None], settings: ReaderSettings
) -> list[dict[str, float]]:
    """One dict of METRICS for each document, in 0..1: the best value over its gold answers, 0 for an empty answer."""
    answers = [strip_reasoning(response) for response in responses]
    rows = [_words(doc, answer, settings) for doc, answer in zip(docs, answers, strict=True)]
    pairs = [
        (number, answer.text, gold)
        for number, (doc, answer) in enumerate(zip(docs, answers, strict=True))
        for gold in doc["answers"]
    ]
    texts, golds = [text for _, text, _ in pairs], [gold for _, _, gold in pairs]
    scored = {"rouge_l": rouge_l_batch(texts, golds, tokenizer=tokenize_chars)}
    scorer = bert_scorer(settings)
    if scorer is not None:
        scored["bertscore_f1"] = list(scorer.score(texts, golds).f1)
    for name, values in scored.items():
        for (number, _, _), value in zip(pairs, values, strict=True):
            rows[number][name] = max(rows[number].get(name, value), value)
    return rows


def _words(doc: Document, answer: Answer, settings: ReaderSettings) -> dict[str, float]:
    language, golds = doc["language"], doc["answers"]
    row = {
        "em": exact_match(answer.text, golds) if answer.text else 0.0,
        "f1": token_f1(answer.text, golds, tokenizer=f1_tokenizer(language)),
        "answer_shown": float(doc["answer_shown"]),
        "empty_rate": float(not answer.text),
        "unfinished_reasoning_rate": float(answer.unfinished),
    }
    if settings.meteor == "on":
        hypothesis, *references = (tokenize_chars(text) for text in (answer.text, *golds))
        row["meteor"] = meteor(hypothesis, references, synonyms=meteor_synonyms(language))
    return row
