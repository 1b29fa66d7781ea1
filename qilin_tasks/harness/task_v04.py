"""Our tasks in lm-eval 0.4: a `ConfigurableTask` whose documents are scored together, after all responses are in."""

from __future__ import annotations

import logging
from copy import deepcopy
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from qilin_tasks.harness.core import BYPASS, TaskCore, by_document


class _SharesAreMeant(logging.Filter):
    """Drops the harness's warning that metrics of a task count different documents, where its table says so."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        return "not scored on the same number" not in said or said[1:].partition("]")[0] not in self.tasks


_shares_are_meant = _SharesAreMeant()


class Task(ConfigurableTask):  # type: ignore[misc]
    """The `class` of every YAML of ours. Raises SettingError or DataError before anything is generated."""

    def __init__(
        self, data_dir: Any = None, cache_dir: Any = None, download_mode: Any = None, config: Any = None
    ) -> None:
        config = dict(config or {})
        self.core = TaskCore(config)
        self._values: dict[Any, dict[str, float]] = {}
        # ConfigurableTask looks a metric up in its own registry unless results are processed elsewhere; ours are.
        config["process_results"] = "qilin_tasks"
        super().__init__(data_dir, cache_dir, download_mode, config)
        self.MULTIMODAL = self.core.asking.multimodal
        if any(metric.of for metric in self.core.scorer.METRICS.values()):
            _shares_are_meant.tasks.add(str(self.config.task))
            logging.getLogger("lm_eval.evaluator_utils").addFilter(_shares_are_meant)
        self.core.metadata = self.config.metadata
        self.core.set_data(self.eval_docs)
        self.core.sign(self.config, self.VERSION)

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """The prompt of a view; of a document, that of its first view."""
        rendered = self.core.render(self.config.doc_to_text if doc_to_text is None else doc_to_text, doc)
        return super().doc_to_text(doc, doc_to_text) if rendered is None else rendered

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, **kwargs: Any) -> list[Any]:
        """The prompt of every view: texts, or chats as the model's template gives them."""
        context = super().fewshot_context
        return [context(doc=view, num_fewshot=num_fewshot, **kwargs) for view in self.core.views(doc)]

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        made = []
        requests = self.core.requests(doc, ctx, self.config.doc_to_choice, template=self.config.doc_to_text)
        for idx, request in enumerate(requests):
            arguments: tuple[Any, ...] = request.arguments
            if self.core.asking.kind == "generate_until":
                arguments = (*arguments, deepcopy(self.config.generation_kwargs))
            if request.images is not None:
                arguments = (*arguments, {"visual": request.images})
            instance = Instance(
                request_type=self.core.asking.kind, doc=dict(request.doc), arguments=arguments, idx=idx, **kwargs
            )
            instance.family = self.core.family_name
            made.append(instance)
        return made

    def build_all_requests(self, **kwargs: Any) -> None:
        """As the harness, then refuses prompts that the model's context can't hold: it would cut them silently."""
        pool = self.config.fewshot_split or self.config.training_split or self.config.validation_split
        options = self.core.before_requests(
            kwargs, documents=len(self.eval_docs), shots=self.config.num_fewshot or 0, pool=bool(pool)
        )
        super().build_all_requests(**options)
        self.core.check_requests(self._instances, self.config.metadata)
        self.core.sign(self.config, self.VERSION)

    def apply_filters(self) -> None:
        """Runs the filters, then scores all documents at once; `process_results` only hands the values out."""
        super().apply_filters()
        if BYPASS in self._metric_fn_list:
            return
        groups = by_document(self._instances)
        values = self.core.score(groups, self.doc_to_target)
        self._values = {group[0].doc["doc_key"]: row for group, row in zip(groups, values, strict=True)}
        for instance in self._instances:
            for name in instance.filtered_resps:
                instance.filtered_resps[name] = self.core.shown(instance)

    def process_results(self, doc: dict[str, Any], results: Any) -> dict[str, Any]:
        if BYPASS in self._metric_fn_list:
            return {BYPASS: None}
        values = self._values[doc["doc_key"]]
        # A document outside of a metric's share has no value of it: the harness then averages those that have.
        return {name: values[name] for name in self._metric_fn_list if name in values}
