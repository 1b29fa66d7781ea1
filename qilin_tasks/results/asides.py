"""Columns of the samples that are no metrics: what other tools would make of the same responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qilin_tasks.families import FAMILIES
from qilin_tasks.family import Document, Scorer
from qilin_tasks.parsing.prompts import whole_response
from qilin_tasks.repeats import score_repeats
from qilin_tasks.results.reader import Sample, sample_of_line
from qilin_tasks.signature import signature_parts


class _Asides:
    """`Scorer.asides` as what `score_repeats` asks."""

    def __init__(self, scorer: Scorer[Any, Any]) -> None:
        self.scorer = scorer

    def score(self, docs: Sequence[Document], responses: Sequence[Sequence[Any]]) -> list[dict[str, float]]:
        return self.scorer.asides(docs, responses)


def responses_of(sample: Sample) -> list[list[Any]]:
    """The repeats of each request, as the task sees them; the samples file holds numbers as text."""
    prompts = sample.raw_prompts
    return [
        [
            (float(response[0]), str(response[1]) == "True")
            if isinstance(response, list)
            else whole_response(prompts[number] if number < len(prompts) else "", response)
            for response in repeats
        ]
        for number, repeats in enumerate(sample.responses)
    ]


def asides(scorer: Scorer[Any, Any], samples: Sequence[Sample]) -> list[dict[str, float]]:
    """A dict a sample, in order ({} where the family has none); of repeats the mean."""
    if not scorer.ASIDES:
        return [{} for _ in samples]
    return score_repeats(_Asides(scorer), [sample.doc for sample in samples], list(map(responses_of, samples))).values


def add_asides(samples: Iterable[dict[str, Any]], metadata: Mapping[str, Any]) -> None:
    """Put the columns into samples as the harness makes them; `metadata` is the task's, with its signature."""
    name = signature_parts(metadata.get("signature")).get("family")
    if name not in FAMILIES:
        return
    found = FAMILIES[name]
    scorer = found.scorer(found.settings.from_metadata(metadata))
    if not scorer.ASIDES:
        return
    lines = list(samples)
    # Through the file's own form, in which releases of the harness differ.
    parsed = [sample_of_line(json.dumps(line, ensure_ascii=False, default=str).encode(), "sample") for line in lines]
    for line, columns in zip(lines, asides(scorer, parsed), strict=True):
        line.update(columns)
