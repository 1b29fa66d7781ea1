"""What a task of ours is, whichever harness asks: settings checked first, the whole batch scored at once, a signature.

The adapters (`task_v04`, `task_v05`) hand over what their harness gives them and put back what it wants.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from qilin_tasks import __version__
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.families import family
from qilin_tasks.family import Document
from qilin_tasks.harness.features import features_of
from qilin_tasks.harness.length import check_prompts_fit
from qilin_tasks.metrics.own import own_metrics, own_part
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.parsing.prompts import opening_tag, whole_response
from qilin_tasks.repeats import WithOwn, score_repeats
from qilin_tasks.signature import digest, signature

logger = logging.getLogger(__name__)

#: The metric that the harness puts in the place of all others with `--predict_only`.
BYPASS = "bypass"
#: The harness cuts everything before this marker itself, so that an answer and a cut-off reasoning look alike.
THINK_END = "think_end_token"


def setting_names(family_name: object) -> list[str]:
    """The settings of a family, in order."""
    return [field.name for field in dataclasses.fields(family(family_name, where="task").settings)]


class View(dict[str, Any]):
    """A document with the variables of one of its prompts."""


def load(**metadata: Any) -> dict[str, Any]:
    """The `custom_dataset` of every YAML of ours: the documents of the family and its settings, as the split `test`."""
    import datasets

    chosen = family(metadata.get("family"), where="task")
    documents = chosen.load(chosen.settings.from_metadata(metadata))
    return {"test": datasets.Dataset.from_list(list(documents), features=features_of(chosen.document))}


class TaskCore:
    """One task: made from the YAML's config, which is changed in place to what the harness shall see.

    Raises SettingError or DataError while it is made, which is before anything is generated.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        config.pop("class", None)
        # An include is merged key by key at the top only, so the base file keeps the defaults in `dataset_kwargs`.
        given = config.get("metadata") or {}
        config["metadata"] = {**(config.pop("dataset_kwargs", None) or {}), **_of_yaml(given), **given}
        self.metadata: dict[str, Any] = config["metadata"]
        self.name = str(config.get("task"))
        self.family_name = str(self.metadata.get("family"))
        self.family = family(self.metadata.get("family"), where=f"task {self.name!r}")
        self.settings: Any = self.family.settings.from_metadata(self.metadata)
        self.scorer = self.family.scorer(self.settings)
        self.asking = self.family.asking(self.settings)
        self.entries = self._metrics(config.get("metric_list"))
        config["metric_list"] = self.entries
        self.scorer.check()
        self._prompt_options: dict[str, Any] = {}
        self._data: dict[str, Any] = {}

    def _metrics(self, listed: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
        """The harness's `metric_list`: what the YAML lists, or the family's whole table, less what is switched off."""
        table = self.scorer.METRICS
        listed = listed or [{"metric": name} for name in table]
        self.own = own_metrics(listed)
        off = self.scorer.unavailable()
        entries = []
        for entry in listed:
            given = entry["metric"]
            name = given if isinstance(given, str) else str(getattr(given, "__name__", type(given).__name__))
            if name in self.own and name in table:
                raise SettingError(f"task {self.name!r}: the metric {name!r} is ours; give the function another name")
            if name not in self.own and name not in table:
                raise unknown(f"task {self.name!r}: metric", given, table)
            higher = self.own[name].higher_is_better if name in self.own else table[name].higher_is_better
            if name not in off:
                entries.append({"metric": name, "aggregation": "mean", "higher_is_better": higher})
        for reason in dict.fromkeys(off.values()):
            names = [name for name, its_reason in off.items() if its_reason == reason]
            logger.warning("%s: without %s: %s", self.name, ", ".join(names), reason)
        return entries

    # Prompts.

    def views(self, doc: Document) -> list[View]:
        """The document once for each prompt, with what that prompt shows."""
        return [View({**doc, **view}) for view in self.asking.views(doc)]

    def render(self, template: object, doc: Document) -> str | None:
        """The prompt of a view (of a document, its first view); None where the template is not one of text."""
        if not isinstance(template, str) or template in doc:
            return None
        view = doc if isinstance(doc, View) else self.views(doc)[0]
        # Compiled once: compiling takes ten times as long as rendering.
        return _template(template).render(**view)

    def requests(
        self, doc: Document, prompts: Sequence[Any], choices: Sequence[str] | None, *, template: object
    ) -> list[Any]:
        """The requests of a document from the prompts of its views; a lone text is that of the first view.

        Raises SettingError where a chat is to give log-likelihoods.
        """
        if isinstance(prompts, str):
            # What callers of the harness's interface hand over, its own tests among them: `doc_to_text(doc)`.
            prompts = [prompts, *(self.render(template, view) for view in self.views(doc)[1:])]
        if self.asking.kind == "loglikelihood" and not all(isinstance(prompt, str) for prompt in prompts):
            raise SettingError(
                f"{self.name} asks for log-likelihoods, which a chat server does not give: use a model of "
                "vllm, hf or local-completions"
            )
        return self.asking.requests(doc, prompts, choices or ())

    def before_requests(self, options: Mapping[str, Any], *, documents: int, shots: int, pool: bool) -> dict[str, Any]:
        """Notes what shapes the prompts and gives back the harness's options for `build_all_requests`.

        Raises SettingError for what only a run needs (images), and for examples out of the documents themselves.
        """
        self.asking.check()
        if shots and not pool:
            raise SettingError(
                f"{self.name}: num_fewshot {shots} would show documents of the test their own answers: name a "
                "`fewshot_split` or `training_split` of other documents in a YAML of your own, or use num_fewshot 0"
            )
        system = options.get("system_instruction")
        self._prompt_options = {
            "chat": int(bool(options.get("apply_chat_template"))),
            "system": digest(system, length=8) if system else None,
        }
        if options.get("samples"):
            self._data["n"] = len(options["samples"])
            self._data["samples"] = digest(sorted(options["samples"]), length=8)
        elif options.get("limit"):
            self._data["n"] = min(int(options["limit"]), documents)
        if options.get("cache_requests"):
            # Its key knows neither settings nor data nor generation arguments.
            logger.warning("%s: --cache_requests is not used: the harness's cache would serve old prompts", self.name)
        return {**options, "cache_requests": False}

    def check_requests(self, instances: Sequence[Any], metadata: Mapping[str, Any]) -> None:
        """Refuses prompts that the model's context can't hold, and a hidden reasoning."""
        marker = metadata.get(THINK_END)
        if marker and self.asking.kind == "generate_until":
            opened = opening_tag(instances[0].args[0])
            # The harness keeps what follows the marker, and all of an output that lacks it.
            if opened and (str(marker).isdigit() or not strip_reasoning(f"{opened}{marker}").unfinished):
                raise SettingError(
                    f"{THINK_END} {marker!r}: with this chat template the harness would strip the reasoning so that "
                    "a cut-off reasoning looks like an answer; these tasks strip reasoning themselves and count what "
                    f"is unfinished: leave it out, or, where the harness wants one (enable_thinking=True), give a "
                    f"text that the model never writes: {THINK_END}=keep-reasoning"
                )
        check_prompts_fit(instances, metadata=metadata, task=self.name)

    # Scores.

    def score(self, groups: Sequence[Sequence[Any]], target: Callable[[Document], Any]) -> list[dict[str, float]]:
        """Values of each document from its instances, in order of their `idx`; every repeat counts alike."""
        docs = [instances[0].doc for instances in groups]
        responses = [
            [[whole_response(one.args[0], response) for response in one.resps] for one in instances]
            for instances in groups
        ]
        repeated = score_repeats(WithOwn(self.scorer, self.own, target), docs, responses)
        if repeated.variance is not None:
            self.metadata["variance"] = repeated.variance
        return repeated.values

    def shown(self, instance: Any) -> Any:
        """The filtered response of the samples file: of every repeat where there are several."""
        shown = [self.scorer.shown(whole_response(instance.args[0], response)) for response in instance.resps]
        return shown[0] if len(shown) == 1 else shown

    # The signature.

    def set_data(self, documents: Sequence[Document]) -> None:
        """The documents' part of the signature."""
        self._data = {**self.scorer.data_parts(documents), "n": len(documents)}

    def sign(self, config: Any, version: object) -> None:
        """Writes the signature into the metadata, from which the harness copies it into the results file."""
        generation = config.generation_kwargs if self.asking.kind == "generate_until" else None
        parts = {
            **self.scorer.signature_parts(),
            "own": own_part(self.own),
            "prompt": digest([config.doc_to_text, config.description, config.doc_to_choice], length=8),
            "gen": digest(generation, length=8) if generation is not None else None,
            "repeats": repeats if (repeats := int(config.repeats or 1)) > 1 else None,
            "shots": config.num_fewshot or 0,
            **self._prompt_options,
            **self._data,
            "v": version,
            "code": __version__,
        }
        self.metadata["signature"] = signature(self.family_name, parts)


def by_document(instances: Sequence[Any]) -> list[list[Any]]:
    """The harness's instances, a list a document, in the order in which it was asked."""
    groups: dict[int, list[Any]] = defaultdict(list)
    for instance in instances:
        groups[instance.doc_id].append(instance)
    return [sorted(group, key=lambda instance: instance.idx) for group in groups.values()]


def _of_yaml(given: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of the task's own YAML, which a group's entry for it (`{task: …, metadata: {…}}`) replaces whole."""
    path = str(given.get("config_source") or "")
    if not Path(path).is_file():
        return {}
    from lm_eval.tasks._yaml_loader import load_yaml

    return dict(load_yaml(path, resolve_func=False).get("metadata") or {})


@lru_cache(maxsize=64)
def _template(source: str) -> jinja2.Template:
    # The harness's own environment (lm_eval.utils): plain text, undefined names are errors.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701
    return environment.from_string(source)
