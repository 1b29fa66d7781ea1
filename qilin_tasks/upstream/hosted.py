"""The data sets of ready documents that the upstream folders load: their configs, sources and licences, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qilin_tasks.errors import SettingError, unknown


@dataclass(frozen=True)
class Licence:
    """`id` is the hub's; `consent` says who has to agree before an upload, "" where the licence is enough."""

    id: str
    name: str
    link: str
    consent: str = ""


@dataclass(frozen=True)
class Hosted:
    """One repository on the hub. `configs`: its configs, each with the tasks that ask about its documents.

    The first task of a config writes it, with `settings` over those of the YAML. `sources` are the hub ids that the
    texts come from.
    """

    name: str
    title: str
    licence: Licence
    languages: tuple[str, ...]
    task_categories: tuple[str, ...]
    sources: tuple[str, ...]
    configs: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, int] = field(default_factory=dict)


_QILIN = Licence(
    "apache-2.0",
    "Apache License 2.0, as THUIR/Qilin states it",
    "https://huggingface.co/datasets/THUIR/Qilin",
    "the authors of Qilin: the notes are Xiaohongshu users' and the answers Xiaohongshu's, so that the licence of the "
    "collection alone doesn't settle a second copy (docs/upstream.md has the letter)",
)
_BY_SA_4 = Licence("cc-by-sa-4.0", "CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/")
_BY_SA_3 = Licence("cc-by-sa-3.0", "CC BY-SA 3.0", "https://creativecommons.org/licenses/by-sa/3.0/")
_MIT = Licence("mit", "MIT License", "https://huggingface.co/datasets/iapp_wiki_qa_squad")
#: The embedded sample's text was made up for the tests of this package, and has its licence.
SAMPLE_LICENCE = Licence("mit", "MIT License of qilin-tasks", "https://opensource.org/license/mit")

_REFUSED = {
    "mteb_fiqa": "FiQA's organisers, whose page allows non-commercial use of the training data and says no more",
    "mteb_msmarco": "Microsoft, whose terms for MS MARCO give no licence to the passages",
}


def _reqa(*sets: str) -> dict[str, tuple[str, ...]]:
    return {name: (f"reqa_{name}", f"reqa_{name}_likelihood") for name in sets}


HOSTED = {
    hosted.name: hosted
    for hosted in (
        Hosted(
            name="qilin-dqa",
            title="Qilin: deep query answering with the notes that a prompt shows",
            licence=_QILIN,
            languages=("zh",),
            task_categories=("question-answering", "text-generation"),
            sources=("THUIR/Qilin",),
            configs={context: (f"qilin_dqa_{context}",) for context in ("na", "bm25", "bert", "oracle")},
        ),
        Hosted(
            name="qilin-ranking",
            title="Qilin: search and recommendation requests with the candidates that a prompt shows",
            licence=_QILIN,
            languages=("zh",),
            task_categories=("text-ranking", "text-retrieval"),
            sources=("THUIR/Qilin",),
            configs={
                name: (f"qilin_{name}_listwise", f"qilin_{name}_pointwise") for name in ("search", "recommendation")
            },
            # Upstream asks about a request in one prompt, however long its list: no exposed list is as long as this.
            settings={"window": 400},
        ),
        Hosted(
            name="reqa-by-sa-4",
            title="ReQA: candidate sentences of SQuAD, XQuAD and HotpotQA",
            licence=_BY_SA_4,
            languages=("en", "zh", "th"),
            task_categories=("text-ranking", "text-retrieval"),
            sources=("rajpurkar/squad", "google/xquad", "mteb/hotpotqa"),
            configs=_reqa("squad", "xquad_en", "xquad_zh", "xquad_th", "mteb_hotpotqa"),
        ),
        Hosted(
            name="reqa-by-sa-3",
            title="ReQA: candidate sentences of Natural Questions",
            licence=_BY_SA_3,
            languages=("en",),
            task_categories=("text-ranking", "text-retrieval"),
            sources=("google-research-datasets/natural_questions", "mteb/nq"),
            configs=_reqa("nq", "mteb_nq"),
        ),
        Hosted(
            name="reqa-mit",
            title="ReQA: candidate sentences of iapp-wiki-qa-squad",
            licence=_MIT,
            languages=("th",),
            task_categories=("text-ranking", "text-retrieval"),
            sources=("iapp_wiki_qa_squad",),
            configs=_reqa("iapp"),
        ),
    )
}


def hosted_names(text: str) -> tuple[str, ...]:
    """`qilin-dqa,reqa-mit` as names, each once. SettingError for another name, and for a set that nobody may host."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names or (text,):
        if name in _REFUSED:
            raise SettingError(f"data set {name!r}: not to be hosted without the consent of {_REFUSED[name]}")
        if name not in HOSTED:
            raise unknown("data set", name, HOSTED)
    return names


def hosted(name: str) -> Hosted:
    """The data set of that name; SettingError with the choices for another one."""
    if name not in HOSTED:
        raise unknown("data set", name, HOSTED)
    return HOSTED[name]
