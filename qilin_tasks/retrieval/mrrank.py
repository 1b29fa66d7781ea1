"""After MrRank (arXiv 2406.05733): a RankNet that merges the rankings of several retrievers.

From the paper: a small network trained on pairs in the RankNet manner, pairs without a relevant document left out. This
project's: the features (rank_features.py), the network's form and size, its optimizer and its constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.retrieval.fusion import by_score
from qilin_tasks.retrieval.rank_features import NO_MAIN, PER_RANKING, Ranking, document_features

HIDDEN = 16
EPOCHS = 10
LEARNING_RATE = 5e-3
WEIGHT_DECAY = 1e-2
QUERIES_A_STEP = 64


@dataclass(frozen=True)
class RankNet:
    """A linear part plus one hidden layer (tanh) over standardised features; applied without PyTorch.

    `main` is the number of the ranking that bounds the pool, NO_MAIN for the documents of all.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    linear: NDArray[np.float64]
    hidden: NDArray[np.float64]
    hidden_bias: NDArray[np.float64]
    output: NDArray[np.float64]
    depth: int
    main: int = NO_MAIN

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """One score a row of `features` (documents, features); more is better."""
        standard = (features - self.mean) / self.deviation
        return np.asarray(standard @ self.linear + np.tanh(standard @ self.hidden + self.hidden_bias) @ self.output)

    def rank(self, rankings: Sequence[Ranking], *, k: int) -> list[tuple[Any, float]]:
        """The `k` best documents of the pool that the rankings offer. DataError for another number of rankings."""
        if len(self.mean) != len(PER_RANKING) * len(rankings):
            raise DataError(
                f"this ranker was trained on {len(self.mean) // len(PER_RANKING)} runs, not {len(rankings)}: pass the "
                "same retrievers' runs in the same order"
            )
        pool, features = document_features(rankings, depth=self.depth, main=self.main)
        return by_score(dict(zip(pool, self.scores(features).tolist(), strict=True)), k=k)


def train_ranknet(
    queries: Sequence[Sequence[Ranking]],
    relevant: Sequence[AbstractSet[Any]],
    *,
    depth: int,
    seed: int,
    main: int = NO_MAIN,
) -> RankNet:
    """Trains on pairs of a relevant and another document of one query's pool, each query with the same weight.

    `queries` has the rankings of each query (the same retrievers in the same order), `relevant` its relevant ids. The
    loss is RankNet's log(1 + exp(s_other - s_relevant)) (Burges et al. 2005); pairs without a relevant document are
    left out. The same seed gives the same model. DataError where no pool holds both kinds of document.
    """
    import torch

    if depth < 2:
        raise SettingError(f"depth {depth}: choose a number of documents from 2")
    groups = []
    for rankings, wanted in zip(queries, relevant, strict=True):
        pool, features = document_features(rankings, depth=depth, main=main)
        is_relevant = np.array([identifier in wanted for identifier in pool], dtype=np.bool_)
        if is_relevant.any() and not is_relevant.all():
            groups.append((features, is_relevant))
    if not groups:
        raise DataError("no query has both a relevant and another document in its runs: check that run and qrels fit")
    everything = np.concatenate([features for features, _ in groups])
    mean, deviation = everything.mean(0), everything.std(0)
    # A feature that never varies says nothing.
    deviation[deviation < 1e-9] = 1.0
    widest = max(len(features) for features, _ in groups)
    inputs = torch.zeros(len(groups), widest, everything.shape[1])
    present = torch.zeros(len(groups), widest, dtype=torch.bool)
    targets = torch.zeros(len(groups), widest, dtype=torch.bool)
    for row, (features, is_relevant) in enumerate(groups):
        inputs[row, : len(features)] = torch.from_numpy((features - mean) / deviation)
        present[row, : len(features)] = True
        targets[row, : len(features)] = torch.from_numpy(is_relevant)
    generator = torch.Generator().manual_seed(seed)
    width = everything.shape[1]
    linear = _parameter((width,), 1 / width**0.5, generator)
    hidden = _parameter((width, HIDDEN), 1 / width**0.5, generator)
    bias = _parameter((HIDDEN,), 1 / width**0.5, generator)
    output = _parameter((HIDDEN,), 1 / HIDDEN**0.5, generator)
    optimizer = torch.optim.AdamW([linear, hidden, bias, output], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(EPOCHS):
        order = torch.randperm(len(groups), generator=generator)
        for start in range(0, len(groups), QUERIES_A_STEP):
            rows = order[start : start + QUERIES_A_STEP]
            batch = inputs[rows]
            scores = batch @ linear + torch.tanh(batch @ hidden + bias) @ output
            query, place = targets[rows].nonzero(as_tuple=True)
            others = (present[rows] & ~targets[rows])[query]
            losses = torch.nn.functional.softplus(scores[query] - scores[query, place].unsqueeze(1)) * others
            of_query = targets[rows].sum(1)[query]
            loss = (losses.sum(1) / others.sum(1) / of_query).sum() / len(rows)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    learned = [part.detach().numpy().astype(np.float64) for part in (linear, hidden, bias, output)]
    return RankNet(mean, deviation, learned[0], learned[1], learned[2], learned[3], depth, main)


def _parameter(shape: tuple[int, ...], bound: float, generator: Any) -> Any:
    import torch

    return ((torch.rand(shape, generator=generator) * 2 - 1) * bound).requires_grad_()
