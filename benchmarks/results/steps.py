"""The steps of the results page: which benchmark answers which question, in the page's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict


@dataclass(frozen=True)
class Step:
    """`arguments` may hold {data}; `quick` is added for a few questions only; `kind` chooses how it is shown."""

    kind: str
    title: str
    script: str
    arguments: tuple[str, ...]
    quick: tuple[str, ...]


class StoredStep(TypedDict):
    """What is kept of a step; `result` is the benchmark's last line."""

    command: list[str]
    date: str
    result: dict[str, Any]


def _fusion(name: str, title: str) -> Step:
    quick = ("--paragraphs", "20", "--repetitions", "1", "--folds", "2", "--resamples", "200")
    return Step("fusion", title, "mrrank.py", ("--set", name, "--data", "{data}/data"), quick)


def _language_model(name: str, title: str, *arguments: str) -> Step:
    quick = ("--questions", "6", "--candidates", "3", "--repetitions", "1", "--folds", "2", "--resamples", "200")
    return Step(
        "lm",
        f"{title}, language models",
        "lm_retriever.py",
        ("--set", name, "--data", "{data}/data", *arguments),
        quick,
    )


STEPS: dict[str, Step] = {
    "fusion_xquad_en": _fusion("xquad_en", "XQuAD en"),
    "fusion_xquad_zh": _fusion("xquad_zh", "XQuAD zh"),
    "fusion_xquad_th": _fusion("xquad_th", "XQuAD th"),
    "fusion_iapp": _fusion("iapp", "iapp (Thai)"),
    "lm_xquad_en": _language_model("xquad_en", "XQuAD en", "--models", "gemma-3-270m", "SmolLM2-135M-Instruct"),
    "lm_xquad_zh": _language_model("xquad_zh", "XQuAD zh"),
    "lm_xquad_th": _language_model("xquad_th", "XQuAD th"),
    "lm_iapp": _language_model("iapp", "iapp (Thai)", "--ways", "likelihood"),
    "known_item": Step(
        "known_item",
        "Known-item search",
        "known_item.py",
        ("--shared", "{data}"),
        ("--limit", "60", "--resamples", "200"),
    ),
    "notes_dqa": Step(
        "notes_dqa",
        "Answers over real notes",
        "notes_dqa.py",
        ("--shared", "{data}"),
        ("--models", "lead", "--limit", "6", "--resamples", "200"),
    ),
    "layers": Step(
        "layers",
        "BERTScore by layer",
        "bertscore_layers.py",
        (
            "--notes",
            "{data}/data/qilin/notes.798.csv",
            "--labels",
            "{data}/data/ragchecker/human_labeled_data.json",
        ),
        ("--limit", "3", "--layers", "1", "8", "--rows", "20"),
    ),
}
