"""The task class of this package: settings checked first, the whole batch scored at once, a signature on the result."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import jinja2
from lm_eval.api.task import ConfigurableTask

from qilin_tasks import __version__
from qilin_tasks.errors import SettingError, unknown
from qilin_tasks.parsing.prompts import opening_tag, whole_response
from qilin_tasks.settings import Settings
from qilin_tasks.signature import digest, digest_all, signature
from qilin_tasks.tasks.length import check_prompts_fit

logger = logging.getLogger(__name__)

BYPASS = "bypass"
# The harness cuts everything before this marker itself, so that an answer and a cut-off reasoning look alike.
THINK_END = "think_end_token"


class BatchScoredTask(ConfigurableTask):  # type: ignore[misc]
    """A YAML task whose documents are scored together, after all responses are in.

    A family sets FAMILY, SETTINGS and METRICS (every name that its scoring may return), and implements
    `score`, `signature_parts` and, where a metric depends on a setting, `unavailable`.
    Raises SettingError or DataError while the task is built, which is before anything is generated.
    """

    FAMILY: ClassVar[str]
    SETTINGS: ClassVar[type[Settings]]
    METRICS: ClassVar[tuple[str, ...]]

    def __init__(
        self, data_dir: Any = None, cache_dir: Any = None, download_mode: Any = None, config: Any = None
    ) -> None:
        config = {key: value for key, value in (config or {}).items() if key != "class"}
        # An include is merged key by key at the top only, so the base file keeps the defaults in `dataset_kwargs`.
        config["metadata"] = {**(config.pop("dataset_kwargs", None) or {}), **(config.get("metadata") or {})}
        self.settings: Any = self.SETTINGS.from_metadata(config["metadata"])
        self.prompt_options: dict[str, Any] = {}
        self._values: dict[Any, dict[str, float]] = {}
        absent = self.unavailable()
        for entry in config.get("metric_list") or ():
            if entry["metric"] not in self.METRICS:
                raise unknown(f"task {config.get('task')!r}: metric", entry["metric"], self.METRICS)
        config["metric_list"] = [e for e in config.get("metric_list") or () if e["metric"] not in absent]
        # ConfigurableTask looks a metric up in its own registry unless results are processed elsewhere; ours are.
        config["process_results"] = "qilin_tasks"
        self.prepare()
        super().__init__(data_dir, cache_dir, download_mode, config)
        for reason in dict.fromkeys(absent.values()):
            names = [name for name, its_reason in absent.items() if its_reason == reason]
            logger.warning("%s: without %s: %s", self.config.task, ", ".join(names), reason)
        self._data = {"data": digest_all(self.eval_docs), "n": len(self.eval_docs)}
        self._sign()

    # What a family says.

    def prepare(self) -> None:
        """Checks that must not wait until the responses are in (packages, models). Raises QilinTasksError."""

    def unavailable(self) -> dict[str, str]:
        """Metrics that the settings switch off, each with the reason."""
        return {}

    @abstractmethod
    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        """Values per document, in order; `responses[i]` holds one entry for each request of document i."""

    @abstractmethod
    def signature_parts(self) -> dict[str, Any]:
        """The settings that change a number, in the order of the signature."""

    def shown_response(self, response: Any) -> Any:
        """What the samples file shows as the filtered response."""
        return response

    # What the harness calls.

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """As the harness, but a template is compiled once: compiling takes ten times as long as rendering."""
        template = self.config.doc_to_text if doc_to_text is None else doc_to_text
        if isinstance(template, str) and template not in self.features and self.prompt is None:
            return _template(template).render(**doc)
        return super().doc_to_text(doc, doc_to_text)

    def build_all_requests(self, **kwargs: Any) -> None:
        """As the harness, then refuses prompts that the model's context can't hold: it would cut them silently."""
        self.prompt_options = {
            "chat": int(bool(kwargs.get("apply_chat_template"))),
            "system": digest(system, length=8) if (system := kwargs.get("system_instruction")) else None,
        }
        if kwargs.get("samples"):
            self._data["n"] = len(kwargs["samples"])
            self._data["samples"] = digest(sorted(kwargs["samples"]), length=8)
        elif kwargs.get("limit"):
            self._data["n"] = min(int(kwargs["limit"]), len(self.eval_docs))
        super().build_all_requests(**kwargs)
        self._refuse_hidden_reasoning()
        check_prompts_fit(self._instances, metadata=self.config.metadata, task=str(self.config.task))
        self._sign()

    def apply_filters(self) -> None:
        """Runs the filters, then scores all documents at once; `process_results` only hands the values out."""
        super().apply_filters()
        if BYPASS in self._metric_fn_list:
            return
        by_doc: dict[int, list[Any]] = defaultdict(list)
        for instance in self._instances:
            by_doc[instance.doc_id].append(instance)
        docs, responses = [], []
        for instances in by_doc.values():
            instances.sort(key=lambda instance: instance.idx)
            docs.append(instances[0].doc)
            responses.append([whole_response(instance.args[0], instance.resps[0]) for instance in instances])
        scores = self.score(docs, responses)
        self._values = {doc["doc_key"]: values for doc, values in zip(docs, scores, strict=True)}
        for instance in self._instances:
            for name in instance.filtered_resps:
                instance.filtered_resps[name] = self.shown_response(whole_response(instance.args[0], instance.resps[0]))

    def process_results(self, doc: dict[str, Any], results: Any) -> dict[str, Any]:
        if BYPASS in self._metric_fn_list:
            return {BYPASS: None}
        values = self._values[doc["doc_key"]]
        return {name: values[name] for name in self._metric_fn_list}

    # Its own.

    def _refuse_hidden_reasoning(self) -> None:
        marker = (self.config.metadata or {}).get(THINK_END)
        if marker and self.OUTPUT_TYPE == "generate_until" and opening_tag(self._instances[0].args[0]):
            raise SettingError(
                f"{THINK_END} {marker!r}: with this chat template the harness would strip the reasoning so that "
                "a cut-off reasoning looks like an answer; remove it from --model_args, these tasks strip "
                "reasoning themselves and count what is unfinished"
            )

    def _sign(self) -> None:
        """Writes the signature into the config, from which the harness copies it into the results file."""
        generation = self.config.generation_kwargs if self.OUTPUT_TYPE == "generate_until" else None
        self.config.metadata["signature"] = signature(
            self.FAMILY,
            {
                **self.signature_parts(),
                "prompt": digest(
                    [self.config.doc_to_text, self.config.description, self.config.doc_to_choice], length=8
                ),
                "gen": digest(generation, length=8) if generation is not None else None,
                "shots": self.config.num_fewshot or 0,
                **self.prompt_options,
                **self._data,
                "v": self.VERSION,
                "code": __version__,
            },
        )


@lru_cache(maxsize=64)
def _template(source: str) -> jinja2.Template:
    # The harness's own environment (lm_eval.utils): plain text, undefined names are errors.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701
    return environment.from_string(source)
