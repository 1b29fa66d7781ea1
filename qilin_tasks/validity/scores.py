"""The metrics that the card judges: those of the answers' table, and two that it compares them with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.dqa.documents import NoteShown
from qilin_tasks.dqa.scorer import METRICS, DQABatch
from qilin_tasks.errors import unknown
from qilin_tasks.metrics.answer_batch import BertScoreSettings
from qilin_tasks.metrics.metric import unavailable
from qilin_tasks.metrics.rouge_l import rouge_l_batch

Floats = NDArray[np.float64]
#: Hypotheses and references to one value a pair.
Score = Callable[[Sequence[str], Sequence[str]], Sequence[float]]

#: Rows of the table that say nothing of a text beside its reference.
_NO_TEXT = {
    "bertscore_cut_rate",
    "empty_rate",
    "unfinished_reasoning_rate",
    "notes_shown",
    "notes_trimmed",
    "refusal_rate",
}


class _Pair(TypedDict):
    query: str
    reference: str
    notes: list[NoteShown]


def _row(
    hypotheses: Sequence[str], references: Sequence[str], *, name: str, settings: BertScoreSettings
) -> list[float]:
    docs: list[_Pair] = [
        {"query": "", "reference": text, "notes": [{"note_idx": 0, "title": "", "content": text, "trimmed": False}]}
        for text in references
    ]
    batch = DQABatch(docs, hypotheses, [[text] for text in references], settings)
    return [float(value) for value in METRICS[name].score(batch)]


def _chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF (Popović 2015) by sacrebleu's defaults (six characters, beta 2), 0..1."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    return [
        chrf.sentence_score(ours, [theirs]).score / 100 for ours, theirs in zip(hypotheses, references, strict=True)
    ]


def _ascii_rouge_l(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    from rouge_score.tokenizers import DefaultTokenizer

    return rouge_l_batch(hypotheses, references, tokenizer=DefaultTokenizer(use_stemmer=False).tokenize)


def scores(settings: BertScoreSettings) -> dict[str, Score]:
    """Every metric of a pair of texts by name; BERTScore only where the settings have it on.

    In rows that read the shown notes (supported, copied), the reference stands in their place.
    """
    left_out = _NO_TEXT | unavailable(METRICS, settings).keys()
    rows = {name: partial(_row, name=name, settings=settings) for name in METRICS if name not in left_out}
    return {**rows, "rouge_l_ascii": _ascii_rouge_l, "chrf": _chrf}


def chosen(names: Sequence[str], settings: BertScoreSettings) -> dict[str, Score]:
    """The named metrics (none: all). `a+b` is the sum of both, each divided by its standard deviation.

    Raises SettingError for a name that is none, with the choices.
    """
    table = scores(settings)
    picked: dict[str, Score] = {}
    for name in names or list(table):
        parts = name.split("+")
        for part in parts:
            if part not in table:
                raise unknown("metric", part, table)
        picked.update({part: table[part] for part in parts})
    return picked


def combine(name: str, columns: dict[str, Floats]) -> Floats:
    """The column of a name, or the equal-weight sum of `a+b`: each part over its standard deviation (0 if constant)."""
    parts = name.split("+")
    if len(parts) == 1:
        return columns[name]
    spreads = [columns[part].std() for part in parts]
    total = sum(
        columns[part] / spread if spread > 0 else columns[part] * 0 for part, spread in zip(parts, spreads, strict=True)
    )
    return np.asarray(total, dtype=np.float64)
