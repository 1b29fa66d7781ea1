"""Means with 95 % intervals, and paired differences, out of one set of resamples for all systems of a benchmark."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.results.stats import percentile_interval, resampled_means

Values = NDArray[np.float64]


class PairedRows:
    """`systems`: a value a question, in one order for all; `clusters` are what is resampled (default: questions)."""

    def __init__(
        self, systems: Mapping[str, Values], *, resamples: int, clusters: Sequence[Hashable] | None = None
    ) -> None:
        self.names = list(systems)
        self._matrix = np.stack([systems[name] for name in self.names], axis=1)
        self._resampled = resampled_means(self._matrix, resamples=resamples, seed=0, clusters=clusters)
        self.units = len(self._matrix) if clusters is None else len(set(clusters))

    def mean(self, name: str, metric: str) -> dict[str, float]:
        """`metric`, `low` and `high` of a system, rounded."""
        column = self.names.index(name)
        return self._rounded(metric, self._matrix[:, column], self._resampled[:, column])

    def difference(self, first: str, second: str) -> dict[str, float]:
        """`minus`, `low` and `high` of the first minus the second, rounded."""
        one, other = self.names.index(first), self.names.index(second)
        resampled = self._resampled[:, one] - self._resampled[:, other]
        return self._rounded("minus", self._matrix[:, one] - self._matrix[:, other], resampled)

    def _rounded(self, name: str, values: Values, resampled: Values) -> dict[str, Any]:
        low, high = percentile_interval(resampled, units=self.units)
        numbers = {name: values.mean(), "low": low, "high": high}
        return {key: round(float(value), 4) for key, value in numbers.items()}
