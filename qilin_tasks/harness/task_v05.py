"""Our tasks in lm-eval 0.5: a `Task` whose instances are scored together, every repeat, for the harness's scorers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.metrics import Metric, mean
from lm_eval.api.task import Task as HarnessTask
from lm_eval.scorers import GenScorer, ScoredDoc

from qilin_tasks.harness.core import BYPASS, TaskCore, by_document


class Task(HarnessTask):  # type: ignore[misc]
    """The `class` of every YAML of ours. Raises SettingError or DataError before anything is generated."""

    def __init__(self, config: Any) -> None:
        config = dict(config)
        self.core = TaskCore(config)
        # The harness would look our metrics up in its registry; they are given as objects below.
        metrics, config["metric_list"] = config["metric_list"], []
        super().__init__(config)
        self.MULTIMODAL = self.core.asking.multimodal
        self._scorers = [self._scorer(metrics)]
        self.config.metric_list = metrics
        # Documents load lazily here: now, so that what is wrong with them stops before a model is loaded.
        self.core.metadata = self.config.metadata
        self.core.set_data(self.eval_docs)
        self.core.sign(self.config, self.VERSION)

    def _scorer(self, metrics: list[dict[str, Any]]) -> Any:
        objects = [
            Metric(
                name=entry["metric"],
                fn=_scored_elsewhere,
                aggregation=mean,
                higher_is_better=entry["higher_is_better"],
                reduction=_mean_of_repeats,
            )
            for entry in metrics
        ]
        scorer = GenScorer.default_scorer()
        scorer.metrics = objects
        return scorer

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """The prompt of a view; of a document, that of its first view."""
        rendered = self.core.render(self.config.doc_to_text if doc_to_text is None else doc_to_text, doc)
        return super().doc_to_text(doc, doc_to_text) if rendered is None else rendered

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, **kwargs: Any) -> list[Any]:
        """The prompt of every view: texts, or chats as the model's template gives them."""
        context = super().fewshot_context
        return [context(doc=view, num_fewshot=num_fewshot, **kwargs) for view in self.core.views(doc)]

    def construct_requests(self, doc: dict[str, Any], ctx: Any, *, doc_id: int, **ignored: Any) -> list[Instance]:
        made = []
        target = self.doc_to_target(doc)
        requests = self.core.requests(doc, ctx, self.config.doc_to_choice, template=self.config.doc_to_text)
        for idx, request in enumerate(requests):
            arguments: tuple[Any, ...] = request.arguments
            if self.core.asking.kind == "generate_until":
                arguments = (*arguments, deepcopy(self.config.generation_kwargs))
            instance = Instance(
                request_type=self.core.asking.kind,
                doc=dict(request.doc),
                arguments=arguments,
                task_name=self.task_name,
                doc_id=doc_id,
                idx=idx,
                repeats=self.config.repeats,
                target=target,
                additional_args=None if request.images is None else {"visual": request.images},
            )
            instance.family = self.core.family_name
            made.append(instance)
        return made

    def build_all_requests(self, **kwargs: Any) -> list[Instance]:
        """As the harness, then refuses prompts that the model's context can't hold: it would cut them silently."""
        pool = self._fewshot_cfg.split or self.config.training_split or self.config.validation_split
        options = self.core.before_requests(
            kwargs, documents=len(self.eval_docs), shots=self.config.num_fewshot or 0, pool=bool(pool)
        )
        instances: list[Instance] = super().build_all_requests(**options)
        self.core.check_requests(instances, self.config.metadata)
        self.core.sign(self.config, self.VERSION)
        return instances

    def process_instances(self) -> None:
        """Scores all documents at once; the harness's scorers hold the values of each document."""
        self.apply_filters()
        groups = by_document(self.instances)
        if self._has_metric(BYPASS):
            values: list[dict[str, float]] = [{BYPASS: 0.0} for _ in groups]
        else:
            values = self.core.score(groups, self.doc_to_target)
        for scorer in self.scorers:
            names = [metric.name for metric in scorer.metrics]
            scorer.set_results(
                {
                    group[0].doc_id: ScoredDoc(
                        group[0].doc_id, group[0].target, {name: [row[name]] for name in names if name in row}
                    )
                    for group, row in zip(groups, values, strict=True)
                }
            )
            for instance in self.instances:
                shown = self.core.shown(instance)
                instance.filtered_resps[scorer.name] = shown if isinstance(shown, list) else [shown]


def _scored_elsewhere(*ignored: Any, **also: Any) -> float:
    raise RuntimeError("metrics of qilin-tasks are computed over the whole batch, not a document at a time")


def _mean_of_repeats(reference: Any, values: list[float]) -> float:
    return sum(values) / len(values)
