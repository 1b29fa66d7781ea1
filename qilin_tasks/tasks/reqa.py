"""ReQA: the loaders and the task classes that the base files in `lm_eval_tasks/reqa/` name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import datasets
from lm_eval.api.instance import Instance

from qilin_tasks.metrics.bertscore import bertscore_signature
from qilin_tasks.metrics.meteor import check_meteor, meteor_signature
from qilin_tasks.metrics.rouge_l import rouge_signature
from qilin_tasks.parsing.answers import strip_reasoning
from qilin_tasks.scoring import reqa as scoring
from qilin_tasks.scoring import reqa_reader
from qilin_tasks.scoring.dqa import bert_scorer
from qilin_tasks.scoring.reqa_retrieval import retriever
from qilin_tasks.scoring.reqa_settings import (
    CandidateSettings,
    GenerateSettings,
    LikelihoodSettings,
    PoolSettings,
    ReaderSettings,
)
from qilin_tasks.settings import Settings
from qilin_tasks.sources.reqa import SETS
from qilin_tasks.tasks import reqa_documents as documents
from qilin_tasks.tasks.base import BatchScoredTask


def load_listwise(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of `reqa_<set>`, as the split `test`."""
    return _split(documents.listwise_documents(CandidateSettings.from_metadata(metadata)))


def load_likelihood(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of `reqa_<set>_likelihood`."""
    return _split(documents.likelihood_documents(LikelihoodSettings.from_metadata(metadata)))


def load_generate(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of `reqa_<set>_generate`."""
    return _split(documents.generate_documents(GenerateSettings.from_metadata(metadata)))


def load_reader(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of `reqa_<set>_reader_<context>`."""
    return _split(documents.reader_documents(ReaderSettings.from_metadata(metadata)))


def _split(rows: list[dict[str, Any]]) -> dict[str, datasets.Dataset]:
    kinds = {list: [datasets.Value("int64")], str: datasets.Value("string"), int: datasets.Value("int64")}
    texts = {name: [datasets.Value("string")] for name in ("answers", "candidates", "passages")}
    features = {
        name: texts.get(name) or kinds.get(type(value), datasets.Value("float64")) for name, value in rows[0].items()
    }
    return {"test": datasets.Dataset.from_list(rows, features=datasets.Features(features))}


class ReQATask(BatchScoredTask):
    """What the families share: the pool in the signature, and a retriever that loads before anything is generated."""

    METRICS: ClassVar[tuple[str, ...]] = scoring.METRICS

    def pool_parts(self) -> dict[str, Any]:
        chosen: PoolSettings = self.settings
        return {
            "set": chosen.set,
            "pool": chosen.pool().fingerprint,
            "limit": chosen.corpus_limit if SETS[chosen.set].beir else None,
            "seed": chosen.shuffle_seed,
        }

    def retriever_part(self, kind: str) -> str:
        return f"dense:{self.settings.dense_model}" if kind == "dense" else "bm25(k1=0.9,b=0.4)"


class ListwiseTask(ReQATask):
    """`reqa_<set>`: the model ranks the first stage's shuffled candidates by writing their ids."""

    FAMILY: ClassVar[str] = "reqa"
    SETTINGS: ClassVar[type[Settings]] = CandidateSettings

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score_listwise(docs, [response[0] for response in responses], self.settings)

    def shown_response(self, response: Any) -> str:
        return strip_reasoning(response).text

    def signature_parts(self) -> dict[str, Any]:
        return {
            **self.pool_parts(),
            "stage1": self.retriever_part(self.settings.first_stage),
            "k": self.settings.top_k,
            "chars": self.settings.candidate_chars,
        }


class LikelihoodTask(ReQATask):
    """`reqa_<set>_likelihood`: the model's log-likelihood ranks the candidates, one request for each."""

    FAMILY: ClassVar[str] = "reqa_likelihood"
    SETTINGS: ClassVar[type[Settings]] = LikelihoodSettings

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> list[Instance]:
        """One request for each candidate, in shown order.

        The candidate stands in front of the question, so that all questions about it share the prompt's beginning.
        """
        kwargs.pop("apply_chat_template", None)
        kwargs.pop("chat_template", None)
        space = "" if doc["language"] == "zh" else " "
        requests = []
        for number, candidate in enumerate(doc["candidates"]):
            if self.settings.direction == "question":
                arguments = (str(ctx).replace(documents.CANDIDATE_MARK, candidate), space + doc["question"])
            else:
                arguments = (str(ctx), space + candidate)
            requests.append(Instance(request_type="loglikelihood", doc=doc, arguments=arguments, idx=number, **kwargs))
        return requests

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score_likelihood(docs, responses, self.settings)

    def signature_parts(self) -> dict[str, Any]:
        return {
            **self.pool_parts(),
            "stage1": self.retriever_part(self.settings.first_stage),
            "k": self.settings.top_k,
            "chars": self.settings.candidate_chars,
            "of": self.settings.direction,
            "per": "byte",
        }


class GenerateTask(ReQATask):
    """`reqa_<set>_generate`: the model writes the answer sentence, which is looked up in the whole pool."""

    FAMILY: ClassVar[str] = "reqa_generate"
    SETTINGS: ClassVar[type[Settings]] = GenerateSettings

    def prepare(self) -> None:
        retriever(self.settings.matcher, self.settings.pool(), self.settings)

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return scoring.score_generate(docs, [response[0] for response in responses], self.settings)

    def shown_response(self, response: Any) -> str:
        return strip_reasoning(response).text

    def signature_parts(self) -> dict[str, Any]:
        return {**self.pool_parts(), "match": self.retriever_part(self.settings.matcher)}


class ReaderTask(ReQATask):
    """`reqa_<set>_reader_<context>`: the model answers from the sentences that a retriever found."""

    FAMILY: ClassVar[str] = "reqa_reader"
    SETTINGS: ClassVar[type[Settings]] = ReaderSettings
    METRICS: ClassVar[tuple[str, ...]] = reqa_reader.METRICS

    @property
    def _synonyms(self) -> str:
        return reqa_reader.meteor_synonyms(SETS[self.settings.set].language)

    def prepare(self) -> None:
        if self.settings.meteor == "on":
            check_meteor(synonyms=self._synonyms, download=self.settings.meteor_download == "on")
        scorer = bert_scorer(self.settings)
        if scorer is not None:
            scorer.check()

    def unavailable(self) -> dict[str, str]:
        off: dict[str, str] = {}
        if self.settings.meteor == "off":
            off |= dict.fromkeys(reqa_reader.METEOR, "meteor is off")
        if self.settings.bertscore == "off":
            off |= dict.fromkeys(reqa_reader.BERTSCORE, "bertscore is off")
        return off

    def score(self, docs: Sequence[dict[str, Any]], responses: Sequence[list[Any]]) -> list[dict[str, float]]:
        return reqa_reader.score(docs, [response[0] for response in responses], self.settings)

    def shown_response(self, response: Any) -> str:
        return strip_reasoning(response).text

    def signature_parts(self) -> dict[str, Any]:
        chosen = self.settings
        retrieved = chosen.context in ("bm25", "dense")
        return {
            **self.pool_parts(),
            "ctx": self.retriever_part(chosen.context) if retrieved else chosen.context,
            "k": None if chosen.context == "na" else chosen.top_k,
            "chars": None if chosen.context == "na" else chosen.candidate_chars,
            "rouge": rouge_signature("char"),
            "meteor": meteor_signature(synonyms=self._synonyms) if chosen.meteor == "on" else "off",
            "bertscore": bertscore_signature(model=chosen.bertscore_model, layer=chosen.bertscore_layer)
            if chosen.bertscore == "on"
            else "off",
        }
