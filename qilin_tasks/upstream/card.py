"""The card of a data set of ready documents: front matter for the hub, then origin, licence, fields and recipes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from qilin_tasks import __version__
from qilin_tasks.upstream.hosted import SAMPLE_LICENCE, Hosted, Licence

CARD = "README.md"


@dataclass(frozen=True)
class Config:
    """One config: the tasks that ask about it, its documents, the settings and sources that made them.

    `differing` counts, for each task but the first, the documents that the task in qilin-tasks shows otherwise.
    """

    name: str
    tasks: tuple[str, ...]
    table: Any
    recipe: Mapping[str, Any]
    sources: Mapping[str, str]
    differing: Mapping[str, int]


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
}
_SIZES = (("n<1K", 1_000), ("1K<n<10K", 10_000), ("10K<n<100K", 100_000), ("100K<n<1M", 1_000_000))


def card(chosen: Hosted, configs: Sequence[Config], *, sample: bool) -> str:
    """The data set's README.md. `sample`: its documents are made of the embedded sample, whose licence they have."""
    licence = SAMPLE_LICENCE if sample else chosen.licence
    head = {
        "license": licence.id,
        "license_name": licence.name,
        "license_link": licence.link,
        "language": list(chosen.languages),
        "pretty_name": chosen.title,
        "task_categories": list(chosen.task_categories),
        "size_categories": [_size(sum(config.table.num_rows for config in configs))],
        "source_datasets": ["original"] if sample else list(chosen.sources),
        "tags": ["lm-evaluation-harness", "benchmark", *(["sample"] if sample else [])],
        "configs": [
            {"config_name": c.name, "data_files": [{"split": "test", "path": f"{c.name}/test-*.parquet"}]}
            for c in configs
        ],
    }
    front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return "\n".join([f"---\n{front}---", "", *_body(chosen, configs, licence, sample=sample)]) + "\n"


def _size(rows: int) -> str:
    return next((name for name, limit in _SIZES if rows < limit), "n>1M")


def _body(chosen: Hosted, configs: Sequence[Config], licence: Licence, *, sample: bool) -> list[str]:
    fields = sorted({(field.name, str(field.type)) for config in configs for field in config.table.schema})
    made_up = ["", "The text was made up for tests: nobody should publish numbers on it."] if sample else []
    consent = [f"Before a copy is hosted, consent is needed of {licence.consent}.", ""] if licence.consent else []
    return [
        f"# {chosen.title}",
        "",
        "One split (`test`), one row a document: all that a prompt shows and that scoring needs, so that a task of",
        f"lm-evaluation-harness loads in seconds. Made by `qilin-tasks publish-docs` {__version__}.",
        *made_up,
        "",
        "## Sources and licence",
        "",
        "| source | commit or state |",
        "|---|---|",
        *(f"| `{name}` | {commit} |" for name, commit in sorted({i for c in configs for i in c.sources.items()})),
        "",
        f"Licence: [{licence.name}]({licence.link}).",
        "",
        *consent,
        "## Fields",
        "",
        "| field | type | |",
        "|---|---|---|",
        *(f"| `{field}` | `{kind}` | {FIELDS.get(field, '')} |" for field, kind in fields),
        "",
        "## Configs and how each was made",
        "",
        "| config | documents | read by | settings |",
        "|---|---:|---|---|",
        *(
            f"| `{config.name}` | {config.table.num_rows} | {', '.join(f'`{task}`' for task in config.tasks)} "
            f"| `{json.dumps(dict(config.recipe), ensure_ascii=False, sort_keys=True)}` |"
            for config in configs
        ),
        "",
        *(line for config in configs for line in _differences(config)),
        "`SHA256SUMS` lists the data files: `sha256sum -c SHA256SUMS`.",
    ]


def _differences(config: Config) -> list[str]:
    """A line for each task of qilin-tasks that cuts the texts otherwise."""
    return [
        f"`{task}` of qilin-tasks shows {count} of the {config.table.num_rows} documents of `{config.name}` with other "
        f"texts or windows; here it asks about the texts of `{config.tasks[0]}`.\n"
        for task, count in config.differing.items()
        if count
    ]
