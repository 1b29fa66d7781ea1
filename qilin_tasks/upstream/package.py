"""All that this folder takes from the rest of the package: a task's documents, their settings and sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from qilin_tasks.errors import DataError
from qilin_tasks.harness import task_manager as loading
from qilin_tasks.sources.qilin import open_qilin
from qilin_tasks.sources.reqa import SETS, data_spec

# The documents don't depend on these; without them no model and no dictionary has to be loaded.
_WITHOUT_SCORING = {"bertscore": "off", "meteor": "off"}
# Settings of the scoring, which shape no document.
_NOT_SHOWN = ("bertscore", "meteor", "dense", "family", "version", "signature", "direction")
# Their data is made by a script; the hub keeps a parquet copy of it under this revision.
_CONVERTED = {"iapp_wiki_qa_squad": "refs/convert/parquet"}


class TaskDocuments(NamedTuple):
    """A task's documents as a pyarrow table, the settings that made them, and their sources (id: commit or state)."""

    table: Any
    recipe: Mapping[str, Any]
    sources: Mapping[str, str]


def read_task(name: str, *, metadata: Mapping[str, Any]) -> TaskDocuments:
    """The documents of a task, as the task itself loads them. QilinTasksError where contexts or data are missing."""
    manager = loading.task_manager((), metadata={**metadata, **_WITHOUT_SCORING})
    chosen = loading.recipe(name, manager)
    if "set" in chosen:
        sources, pinned = _reqa_source(str(chosen["set"]), revision=chosen.get("data_revision"))
        manager = loading.task_manager((), metadata={**metadata, **_WITHOUT_SCORING, **pinned})
    else:
        sources = _qilin_source()
    task = loading.load(name, manager)
    table = task.dataset["test"].data.table.combine_chunks().replace_schema_metadata(None)
    recipe = {key: value for key, value in chosen.items() if not key.startswith(_NOT_SHOWN)}
    return TaskDocuments(table, recipe, sources)


def is_sample(name: str) -> bool:
    """Whether a data set's documents are made of the embedded sample."""
    return (data_spec() if name.startswith("reqa") else open_qilin().name) == "sample"


def _qilin_source() -> dict[str, str]:
    source = open_qilin()
    if source.name == "sample":
        return {"sample": "of qilin-tasks, text made up for tests"}
    if source.revision is not None:
        return {source.name: source.revision}
    prints = ", ".join(f"{config} {source.fingerprint(config)}" for config in ("dqa", "notes") if source.has(config))
    return {"THUIR/Qilin": f"a local copy, fingerprints {prints}"}


def _reqa_source(name: str, *, revision: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The source of a set, and the setting that pins the load to what is recorded."""
    place, hub = data_spec(), SETS[name].hub
    if place == "sample":
        return {"sample": "of qilin-tasks, text made up for tests"}, {}
    if place != "hub":
        return {hub: "a local copy"}, {}
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    asked = revision or _CONVERTED.get(hub)
    try:
        commit = HfApi().dataset_info(hub, revision=asked).sha
    except (OSError, HfHubHTTPError) as error:
        raise DataError(f"{hub}: its commit can't be read from the hub ({type(error).__name__}); go online") from error
    return {hub: str(commit)}, {} if hub in _CONVERTED else {"data_revision": str(commit)}
