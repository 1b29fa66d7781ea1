"""MrRank's experiment (arXiv 2406.05733): a ranker trained on one split's questions, applied to another's, repeated.

From the paper: sentence-level ReQA, the train split to learn from and dev to evaluate, MRR and R@1/5/10, the mean of
five repetitions, reciprocal rank fusion and routing as baselines. This project's: what the ranker and the router are
(retrieval/mrrank.py, retrieval/routing.py), how deep the rankings go, and the equally weighted sum beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, SettingError, unknown
from qilin_tasks.reqa.pools import Pool
from qilin_tasks.reqa.stored_rankings import BM25_NAME, Joined, Ranking, StoredRankings, rank_pool
from qilin_tasks.retrieval.encoders import Encoder, load_encoder
from qilin_tasks.retrieval.fusion import reciprocal_rank_fusion, weighted_sum
from qilin_tasks.retrieval.mrrank import train_ranknet
from qilin_tasks.retrieval.rank_features import NO_MAIN
from qilin_tasks.retrieval.ranker_file import save_ranker
from qilin_tasks.retrieval.routing import train_router

logger = logging.getLogger(__name__)

CUTOFFS = (1, 5, 10)
METRICS = ("mrr", *(f"r@{k}" for k in CUTOFFS))
Ranks = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings:
    """`retrievers`: `bm25` and encoders; `main`: the one whose first `depth` documents are the pool, or None.

    `prompts`: texts before each query and document of an encoder; `train_questions`: so many, drawn by a seed, teach.
    """

    retrievers: tuple[str, ...]
    main: str | None
    depth: int
    repetitions: int
    train_questions: int | None
    prompts: dict[str, tuple[str, str]]
    batch_size: int
    device: str

    def __post_init__(self) -> None:
        if len(self.retrievers) < 2 or len(set(self.retrievers)) < len(self.retrievers):
            raise SettingError(f"retrievers {', '.join(self.retrievers)}: give two or more, each once")
        if self.main is not None and self.main not in self.retrievers:
            raise unknown("main", self.main, self.retrievers)
        for name in self.prompts:
            if name not in self.retrievers or name == BM25_NAME:
                raise unknown("prompts of", name, [each for each in self.retrievers if each != BM25_NAME])
        for name, least in (("depth", 2), ("repetitions", 1), ("batch_size", 1), ("train_questions", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise SettingError(f"{name} {value}: choose a number from {least}")

    @property
    def main_number(self) -> int:
        """The place of `main` among the retrievers, NO_MAIN without one."""
        return NO_MAIN if self.main is None else self.retrievers.index(self.main)


class SystemRow(TypedDict):
    """A system's metrics on the evaluated set; of a learned one the mean over the repetitions, and each one's MRR."""

    system: str
    metrics: dict[str, float]
    repetitions: int
    mrr_of_each: list[float]
    mrr_deviation: float


class SplitFacts(TypedDict):
    """What a split holds; `offered`: share of its questions with an answer sentence in the retrievers' pool."""

    set: str
    questions: int
    pairs: int
    candidates: int
    fingerprint: str
    offered: float


class ExperimentResult(TypedDict):
    """What `results.json` of the experiment holds."""

    experiment: str
    train: SplitFacts
    test: SplitFacts
    trained_on: int
    questions_in_both: int
    retrievers: list[str]
    settings: dict[str, object]
    systems: list[SystemRow]


def rank_of(ranking: Sequence[tuple[int, float]], relevant: AbstractSet[int]) -> float:
    """ReQA's rank of the best relevant document: from 1, ties averaged; infinity where the ranking has none.

    >>> rank_of([(7, 2.0), (3, 1.0), (4, 1.0)], {4})
    2.5
    """
    best = max((score for position, score in ranking if position in relevant), default=None)
    if best is None:
        return float("inf")
    above = sum(score > best for _, score in ranking)
    return above + (sum(score == best for _, score in ranking) + 1) / 2


def metrics_of(ranks: Ranks) -> dict[str, float]:
    """MRR and R@k of the ranks of all questions (infinity: not found, counts 0)."""
    values = {"mrr": float((1 / ranks).mean())}
    return values | {f"r@{k}": float((ranks <= k).mean()) for k in CUTOFFS}


def run_experiment(train: Pool, test: Pool, settings: ExperimentSettings, *, folder: Path) -> ExperimentResult:
    """Trains on `train`, evaluates on `test`; rankings and trained rankers stay in `folder`, for going on too.

    Raises DataError where both are the same questions, or nothing can be learned.
    """
    if train.fingerprint == test.fingerprint:
        raise DataError(
            f"{train.name} and {test.name} are the same questions: train on another split than is evaluated"
        )
    encoders: dict[str, Encoder | None] = {name: _encoder(name, settings) for name in settings.retrievers}
    runs = {
        split: tuple(
            rank_pool(pool, encoder=encoder, depth=settings.depth, file=folder / "rankings" / f"{split}.{number}.npz")
            for number, encoder in enumerate(encoders.values())
        )
        for split, pool in (("train", train), ("test", test))
    }
    drawn = _drawn(len(train.questions), settings.train_questions)
    learned_from = Joined(runs["train"], drawn)
    train_gold = [frozenset(question.gold) for question in train.questions]
    gold = [frozenset(question.gold) for question in test.questions]
    asked = Joined(runs["test"], range(len(test.questions)))

    systems = [_row(name, [_ranks(run, gold)]) for name, run in zip(settings.retrievers, runs["test"], strict=True)]
    most = settings.depth * len(settings.retrievers)
    equal = [1 / len(settings.retrievers)] * len(settings.retrievers)
    systems.append(_row("rrf", [_ranks((reciprocal_rank_fusion(each, k=most) for each in asked), gold)]))
    systems.append(
        _row("weighted (equal)", [_ranks((weighted_sum(each, weights=equal, k=most) for each in asked), gold)])
    )
    wanted = [train_gold[row] for row in drawn]
    try:
        router = train_router(learned_from, wanted, depth=settings.depth, seed=0)
    except DataError as error:
        logger.warning("routing is left out: %s", error)
    else:
        systems.append(_row("routing", [_ranks((router.rank(each, k=most) for each in asked), gold)]))
    repeated = []
    for seed in range(settings.repetitions):
        model = train_ranknet(learned_from, wanted, depth=settings.depth, seed=seed, main=settings.main_number)
        recipe = {"seed": seed, "queries": len(drawn), "set": train.name, "main": settings.main}
        save_ranker(folder / f"ranker.{seed}.npz", model, recipe=recipe)
        repeated.append(_ranks((model.rank(each, k=most) for each in asked), gold))
        logger.info("seed %d: MRR %.4f", seed, metrics_of(repeated[-1])["mrr"])
    systems.append(_row("mrrank" if settings.main is None else f"mrrank (main: {settings.main})", repeated))
    texts = {question.text for question in train.questions}

    def offering(split: tuple[StoredRankings, ...]) -> tuple[StoredRankings, ...]:
        return split if settings.main is None else (split[settings.main_number],)

    return {
        "experiment": "mrrank",
        "train": _facts(train, offering(runs["train"]), train_gold),
        "test": _facts(test, offering(runs["test"]), gold),
        "trained_on": len(drawn),
        "questions_in_both": sum(question.text in texts for question in test.questions),
        "retrievers": [BM25_NAME if encoder is None else encoder.signature for encoder in encoders.values()],
        "settings": asdict(settings),
        "systems": systems,
    }


def _encoder(name: str, settings: ExperimentSettings) -> Encoder | None:
    if name == BM25_NAME:
        return None
    query, document = settings.prompts.get(name, (None, None))
    return load_encoder(
        name,
        backend="sentence-transformers",
        batch_size=settings.batch_size,
        max_length=None,
        device=settings.device,
        query_prompt=query,
        document_prompt=document,
    )


def _drawn(questions: int, wanted: int | None) -> list[int]:
    """The rows that teach, ascending."""
    if wanted is None or wanted >= questions:
        return list(range(questions))
    return sorted(np.random.default_rng(0).choice(questions, size=wanted, replace=False).tolist())


def _ranks(rankings: Iterable[Ranking], gold: Sequence[AbstractSet[int]]) -> Ranks:
    return np.array([rank_of(ranking, wanted) for ranking, wanted in zip(rankings, gold, strict=True)])


def _row(system: str, ranks: Sequence[Ranks]) -> SystemRow:
    of_each = [metrics_of(each) for each in ranks]
    reciprocal = [each["mrr"] for each in of_each]
    return {
        "system": system,
        "metrics": {name: float(np.mean([each[name] for each in of_each])) for name in METRICS},
        "repetitions": len(ranks),
        "mrr_of_each": reciprocal,
        "mrr_deviation": float(np.std(reciprocal, ddof=1)) if len(reciprocal) > 1 else 0.0,
    }


def _facts(pool: Pool, runs: Sequence[StoredRankings], gold: Sequence[AbstractSet[int]]) -> SplitFacts:
    offered = [
        any(not wanted.isdisjoint(run.positions[row].tolist()) for run in runs) for row, wanted in enumerate(gold)
    ]
    return {
        "set": pool.name,
        "questions": len(pool.questions),
        "pairs": pool.pairs,
        "candidates": len(pool.candidates),
        "fingerprint": pool.fingerprint,
        "offered": float(np.mean(offered)),
    }
