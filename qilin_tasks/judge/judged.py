"""What a judge said of one answer, or of two: verdicts, values and texts of every repeat."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from qilin_tasks.judge.agreement import kappa, spearman
from qilin_tasks.judge.labels import Label, Place, mean_scores


@dataclass(frozen=True)
class Judged:
    """One answer (`models` of one) or a pair; lists have an entry a repeat.

    `verdicts` hold one verdict a nugget, or the pair's one; None where the judge could not be read. `values` are None
    where any verdict of that repeat is missing: a judge's failure is never a score.
    """

    task: str
    key: str
    models: tuple[str, ...]
    cluster: Hashable
    verdicts: Sequence[Sequence[str | None]]
    values: Sequence[Mapping[str, float] | None]
    texts: Sequence[Sequence[str | None]]

    @property
    def place(self) -> Place:
        """What a label of the same names."""
        return self.task, self.key, self.models

    def value(self, name: str) -> float | None:
        """The mean over the repeats that could be read; None where none could, or has the value."""
        found = [values[name] for values in self.values if values is not None and name in values]
        return sum(found) / len(found) if found else None


def failed_share(judged: Sequence[Judged]) -> float:
    """Share of the verdicts that could not be read; 0 where none was asked for."""
    verdicts = [verdict for one in judged for repeat in one.verdicts for verdict in repeat]
    return verdicts.count(None) / len(verdicts) if verdicts else 0.0


def with_itself(judged: Sequence[Judged], name: str) -> tuple[float | None, float | None]:
    """Mean kappa of the verdicts and Spearman of the values over all pairs of repeats; None where none has one."""
    kappas, correlations = [], []
    for a, b in combinations(range(max((len(one.values) for one in judged), default=0)), 2):
        both = [
            (first, second)
            for one in judged
            for first, second in zip(one.verdicts[a], one.verdicts[b], strict=True)
            if first is not None and second is not None
        ]
        scores = [
            (first[name], second[name])
            for one in judged
            if (first := one.values[a]) is not None and (second := one.values[b]) is not None
        ]
        kappas.append(kappa([first for first, _ in both], [second for _, second in both]))
        correlations.append(spearman([first for first, _ in scores], [second for _, second in scores]))
    return _mean(kappas), _mean(correlations)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def with_people(judged: Sequence[Judged], labels: Sequence[Label], name: str) -> tuple[float | None, float | None]:
    """Kappa of the first repeat's verdicts with each label's, and Spearman of the values with the labels' means.

    Raises ValueError where a label has another number of verdicts than there are nuggets.
    """
    by_place = {one.place: one for one in judged}
    both: list[tuple[str, str]] = []
    for label in labels:
        one = by_place.get(label.place)
        if one is not None and label.verdicts:
            pairs = zip(one.verdicts[0], label.verdicts, strict=True)
            both += [(ours, theirs) for ours, theirs in pairs if ours is not None]
    scores = [
        (value, score)
        for place, score in mean_scores(labels).items()
        if place in by_place and (value := by_place[place].value(name)) is not None
    ]
    return (
        kappa([ours for ours, _ in both], [theirs for _, theirs in both]),
        spearman([ours for ours, _ in scores], [theirs for _, theirs in scores]),
    )
