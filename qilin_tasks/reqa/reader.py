"""Responses to per-document scores for the readers of ReQA: EM, F1, ROUGE-L, METEOR, BERTScore F1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from qilin_tasks.answer_scorer import AnswerScorer
from qilin_tasks.family import Document
from qilin_tasks.metrics.answer_batch import (
    BERTSCORE_F1,
    EMPTY_RATE,
    UNFINISHED_REASONING_RATE,
    UNKNOWN_MARKS_RATE,
    AnswerBatch,
    count,
    rouge_l,
)
from qilin_tasks.metrics.meteor import check_meteor, meteor, meteor_signature
from qilin_tasks.metrics.metric import Metric, Table
from qilin_tasks.metrics.squad import Tokenizer, exact_match, token_f1
from qilin_tasks.reqa.retrieval import retriever_recipe
from qilin_tasks.reqa.scorer import pool_parts
from qilin_tasks.reqa.settings import RETRIEVERS, ReaderSettings
from qilin_tasks.text.languages import UNSPACED
from qilin_tasks.text.tokens import tokenize_chars


def f1_tokenizer(language: str) -> Tokenizer:
    """SQuAD's own tokens (between spaces); characters for languages that write none, such as Chinese and Thai."""
    return tokenize_chars if language in UNSPACED else str.split


def meteor_synonyms(language: str) -> str:
    """WordNet for English; there is none here for other languages, where METEOR compares tokens only."""
    return "wordnet" if language == "en" else "none"


def _exact_match(batch: AnswerBatch) -> list[float]:
    pairs = zip(batch.texts, batch.references, strict=True)
    return [exact_match(text, golds) if text else 0.0 for text, golds in pairs]


def _token_f1(batch: AnswerBatch) -> list[float]:
    return [
        token_f1(text, golds, tokenizer=f1_tokenizer(doc["language"]))
        for doc, text, golds in zip(batch.docs, batch.texts, batch.references, strict=True)
    ]


def _meteor(batch: AnswerBatch) -> list[float]:
    values = []
    for doc, text, golds in zip(batch.docs, batch.texts, batch.references, strict=True):
        hypothesis, *references = (tokenize_chars(some) for some in (text, *golds))
        values.append(meteor(hypothesis, references, synonyms=meteor_synonyms(doc["language"])))
    return values


METRICS: Table[AnswerBatch] = {
    "em": Metric(
        about="exact match with a gold answer, normalised as SQuAD", score=_exact_match, higher_is_better=True
    ),
    "f1": Metric(about="F1 of tokens with the best gold answer", score=_token_f1, higher_is_better=True),
    "rouge_l": rouge_l(
        "ROUGE-L F1 over characters and words", tokenizer=tokenize_chars, recipe="rouge", name="char", headline=True
    ),
    "meteor": Metric(
        about="METEOR with the best gold answer",
        score=_meteor,
        higher_is_better=True,
        switch="meteor",
        settings=("meteor_download",),
        recipe=("meteor", lambda s: meteor_signature(synonyms=meteor_synonyms(s.source.language))),
    ),
    "bertscore_f1": BERTSCORE_F1,
    "answer_shown": count("an answer sentence is in the prompt", "answer_shown", higher_is_better=True, high=1.0),
    "empty_rate": EMPTY_RATE,
    "unfinished_reasoning_rate": UNFINISHED_REASONING_RATE,
    "unknown_marks_rate": UNKNOWN_MARKS_RATE,
}


class ReaderScorer(AnswerScorer[ReaderSettings]):
    """`reqa_<set>_reader_<context>`: values in 0..1, the best over the gold answers, 0 for an empty answer."""

    METRICS: ClassVar[Table[Any]] = METRICS

    def check(self) -> None:
        if self.settings.meteor == "on":
            synonyms = meteor_synonyms(self.settings.source.language)
            check_meteor(synonyms=synonyms, download=self.settings.meteor_download == "on")
        super().check()

    def references(self, doc: Document) -> Sequence[str]:
        answers: list[str] = doc["answers"]
        return answers

    def document_parts(self) -> dict[str, Any]:
        chosen = self.settings
        retrieved = chosen.context in RETRIEVERS
        return {
            **pool_parts(chosen),
            "ctx": retriever_recipe(chosen.context, chosen) if retrieved else chosen.context,
            "k": None if chosen.context == "na" else chosen.top_k,
            "chars": None if chosen.context == "na" else chosen.candidate_chars,
        }
