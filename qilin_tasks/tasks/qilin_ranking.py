"""Qilin search and recommendation: the loaders and task classes that the ranking YAMLs name."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

import datasets
from lm_eval.api.instance import Instance

from qilin_tasks.candidates.documents import build_ranking
from qilin_tasks.candidates.settings import ListwiseSettings, RankingSettings
from qilin_tasks.candidates.windows import MERGE
from qilin_tasks.contexts import RENDERING
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.scoring import qilin_ranking as scoring
from qilin_tasks.settings import Settings
from qilin_tasks.tasks.base import BatchScoredTask

CANDIDATE = {
    "note_idx": datasets.Value("int64"),
    "title": datasets.Value("string"),
    "content": datasets.Value("string"),
}
FEATURES = {
    "doc_key": datasets.Value("int64"),
    "request_id": datasets.Value("int64"),
    "query": datasets.Value("string"),
    "history": [datasets.Value("string")],
    "candidates": [CANDIDATE],
    "windows": [[datasets.Value("int64")]],
    "relevant": [datasets.Value("int64")],
    "n_relevant": datasets.Value("int64"),
    "first_stage": [datasets.Value("int64")],
    "candidates_trimmed": datasets.Value("int64"),
}


def load_listwise(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of the listwise YAMLs, as the split `test`."""
    documents = build_ranking(ListwiseSettings.from_metadata(metadata))
    return {"test": datasets.Dataset.from_list(documents, features=datasets.Features(FEATURES))}


def load_pointwise(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of the pointwise YAMLs, as the split `test`."""
    documents = build_ranking(RankingSettings.from_metadata(metadata))
    return {"test": datasets.Dataset.from_list(documents, features=datasets.Features(FEATURES))}


class RankingTask(BatchScoredTask):
    """Candidates of one request ranked in several prompts: a document has as many requests as `views` gives."""

    SETTINGS: ClassVar[type[Settings]] = RankingSettings
    METRICS: ClassVar[tuple[str, ...]] = scoring.METRICS

    def views(self, doc: dict[str, Any]) -> list[dict[str, Any]]:
        """The document once for each prompt, with what that prompt shows."""
        raise NotImplementedError

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """The prompt of a view; of a document, that of its first view."""
        view = doc if "view" in doc else self.views(doc)[0]
        return super().doc_to_text(view["view"], doc_to_text)

    def fewshot_context(self, doc: dict[str, Any], num_fewshot: int, **kwargs: Any) -> list[str]:
        """The prompt of every view."""
        context = super().fewshot_context
        return [str(context(doc=view, num_fewshot=num_fewshot, **kwargs)) for view in self.views(doc)]

    def signature_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {
            "config": chosen.config,
            "rows": chosen.rows or "all",
            "shuffle": chosen.shuffle_seed,
            "note": chosen.note_chars,
            "query": chosen.query_chars,
            "history": chosen.history if chosen.config == "recommendation_test" else None,
            "shown": RENDERING,
        }


class ListwiseTask(RankingTask):
    """The model writes a ranking of numbered candidates, in windows where the list is long."""

    FAMILY: ClassVar[str] = "qilin-listwise"
    SETTINGS: ClassVar[type[Settings]] = ListwiseSettings

    def views(self, doc: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                **doc,
                "window": ids,
                "view": {
                    "query": doc["query"],
                    "history": doc["history"],
                    "candidates": [doc["candidates"][i - 1] for i in ids],
                },
            }
            for ids in doc["windows"]
        ]

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        contexts = [ctx] if isinstance(ctx, str) else ctx
        requests = []
        for idx, (context, ids) in enumerate(zip(contexts, doc["windows"], strict=False)):
            arguments = (context, deepcopy(self.config.generation_kwargs), *self.extra_arguments(doc, ids))
            requests.append(
                Instance(
                    request_type="generate_until",
                    doc={**doc, "window": ids},
                    arguments=arguments,
                    idx=idx,
                    **kwargs,
                )
            )
        return requests

    def extra_arguments(self, doc: dict[str, Any], ids: Sequence[int]) -> tuple[Any, ...]:
        """What a request carries besides its prompt and generation settings."""
        return ()

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score_listwise(docs, responses)

    def shown_response(self, response: Any) -> str:
        return strip_reasoning(response).text

    def signature_parts(self) -> dict[str, Any]:
        chosen = self.settings
        return {**super().signature_parts(), "total": chosen.context_chars, "window": chosen.window, "merge": MERGE}


class PointwiseTask(RankingTask):
    """The log-likelihood of a yes against a no for each candidate: requests 0..n-1 are the yes, n..2n-1 the no."""

    FAMILY: ClassVar[str] = "qilin-pointwise"

    def views(self, doc: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {**doc, "view": {"query": doc["query"], "history": doc["history"], "candidate": candidate}}
            for candidate in doc["candidates"]
        ]

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        contexts = [ctx] if isinstance(ctx, str) else ctx
        pairs = [(context, answer) for answer in self.config.doc_to_choice for context in contexts]
        return [
            Instance(request_type="loglikelihood", doc=doc, arguments=pair, idx=idx, **kwargs)
            for idx, pair in enumerate(pairs)
        ]

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score_pointwise(docs, responses)
