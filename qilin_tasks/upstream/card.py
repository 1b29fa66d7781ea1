"""The card of a data set of ready documents: its fields, how they were made, where from, and its licence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qilin_tasks import __version__
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.reqa import SETS, data_spec


@dataclass(frozen=True)
class Config:
    """One task's documents: `recipe` are the settings that made them, `signature` sums them up with their digest."""

    task: str
    table: Any
    recipe: Mapping[str, Any]
    signature: str


FIELDS = {
    "doc_key": "the document's key: the row of the source (Qilin), the question's id (ReQA)",
    "search_idx": "Qilin's id of the search",
    "request_id": "Qilin's id of the search or of the recommendation request",
    "query": "the question or query as the prompt shows it",
    "notes": "the notes that the prompt shows, best first; `trimmed`: the budget of characters cut it",
    "reference": "the answer that was shown to the user (`dqa_output`)",
    "history": "titles of notes that the user clicked before",
    "candidates": "what is ranked, in a shuffled order; candidate i is shown as [i]",
    "windows": "ids of the candidates of each prompt; several prompts where the list is long",
    "relevant": "ids (1-based) of the clicked notes (Qilin) or of the answer sentences (ReQA)",
    "n_relevant": "clicked impressions, by which the official MAP divides",
    "first_stage": "ids in the order of BM25",
    "candidates_trimmed": "how many candidates were cut to their budget",
    "language": "en, zh or th",
    "question": "the question",
    "paragraph": "number of the gold paragraph in the pool",
    "documents": "numbers of all gold paragraphs",
    "answers": "the gold answers",
    "owners": "each candidate's paragraph",
    "direction": "whose log-likelihood ranks: the question's given the sentence, or the sentence's given the question",
}
_QILIN_LICENCE = (
    "The notes, questions and answers are Qilin's and keep the terms of "
    "[THUIR/Qilin](https://huggingface.co/datasets/THUIR/Qilin); look at them before you upload this."
)
_REQA_LICENCE = (
    "SQuAD and XQuAD: CC BY-SA 4.0; Natural Questions: CC BY-SA 3.0; iapp-wiki-qa-squad: MIT; the sets of MTEB keep "
    "the terms of their origin. What is derived from them here keeps theirs."
)


def card(name: str, configs: Sequence[Config]) -> str:
    """The data set's README.md: front matter that `datasets` reads the configs from, then the card."""
    languages = ["zh"] if name == "qilin" else ["en", "zh", "th"]
    head = ["---", "license: other", "language:", *(f"- {language}" for language in languages), "configs:"]
    for config in configs:
        head += [
            f"- config_name: {config.task}",
            "  data_files:",
            "  - split: test",
            f"    path: {config.task}/test-*.parquet",
        ]
    return "\n".join([*head, "---", "", *_body(name, configs)]) + "\n"


def _body(name: str, configs: Sequence[Config]) -> list[str]:
    title = {"qilin": "Qilin", "reqa": "ReQA"}[name]
    fields = sorted({(field.name, str(field.type)) for config in configs for field in config.table.schema})
    return [
        f"# {title}: documents for lm-evaluation-harness",
        "",
        "One config a task, one split (`test`), one row a document: all that the prompt shows and that scoring needs,",
        f"so that a task loads in seconds. Made by `qilin-tasks publish-docs` {__version__}.",
        "",
        "## Origin and licence",
        "",
        _origin(name, configs),
        "",
        _QILIN_LICENCE if name == "qilin" else _REQA_LICENCE,
        "",
        "## Fields",
        "",
        "| field | type | |",
        "|---|---|---|",
        *(f"| `{field}` | `{kind}` | {FIELDS.get(field, '')} |" for field, kind in fields),
        "",
        "## Configs and how each was made",
        "",
        "| config | documents | settings | signature |",
        "|---|---:|---|---|",
        *(
            f"| `{config.task}` | {config.table.num_rows} | `{_settings(config)}` | `{_escaped(config.signature)}` |"
            for config in configs
        ),
        "",
        "`SHA256SUMS` lists every file: `sha256sum -c SHA256SUMS`.",
    ]


def _origin(name: str, configs: Sequence[Config]) -> str:
    if name == "qilin":
        source = open_qilin()
        revision = source.revision or "none (a local folder or the sample of qilin-tasks)"
        prints = {config: source.fingerprint(config) for config in ("dqa", "notes") if source.has(config)}
        shown = ", ".join(f"{config} `{value}`" for config, value in prints.items())
        made_up = " The sample's text was made up for tests: nobody should publish numbers on it." * (
            source.name == "sample"
        )
        return f"Source: `{source.name}`; revision: {revision}; fingerprints of what was read: {shown}.{made_up}"
    sets = {str(config.recipe["set"]): config.recipe.get("data_revision") for config in configs}
    lines = [f"{key} = `{SETS[key].hub}` ({SETS[key].split}), revision {sets[key] or 'newest'}" for key in sorted(sets)]
    where = data_spec()
    made_up = " The sample's text was made up for tests: nobody should publish numbers on it." * (where == "sample")
    return f"Read from: `{where}`; sets: {'; '.join(lines)}.{made_up}"


def _settings(config: Config) -> str:
    """Only what shapes the documents; how they are scored is the task's."""
    shown = {k: v for k, v in config.recipe.items() if not k.startswith(("bertscore", "meteor", "dense"))}
    return _escaped(json.dumps(shown, ensure_ascii=False, sort_keys=True))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
