"""The release's features of notes, users, requests and clicked notes, as the numbers that DCN-V2 reads.

The columns are those of the official processor (RED-Search/Qilin, baselines/src/dataset_factory.py), but for the
BERT vectors of query and note, which are not made here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, unknown
from qilin_tasks.sources.qilin import QilinSource
from qilin_tasks.sources.schema import COUNTERS, DETAILS_COLUMNS

CONFIGS = ("search_train", "search_test", "recommendation_train", "recommendation_test")
NOTE_NUMBERS = ("video_duration", "video_height", "video_width", "image_num", "content_length", "commercial_flag")
NOTE_KINDS = ("note_type", "taxonomy1_id", "taxonomy2_id", "taxonomy3_id", "note_idx")
USER_NUMBERS = ("fans_num", "follows_num", *(f"dense_feat{number}" for number in range(1, 41)))
USER_KINDS = ("gender", "platform", "age", "location", "user_idx")
#: Clicked notes that count, from the beginning of the list.
HISTORY = 10
#: The index of what was not seen in training, and of the end of a short history.
UNSEEN = 0

Features = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Impressions:
    """Shown notes, one an entry: the request's row, the note, whether it was clicked (0 or 1), and the request."""

    rows: NDArray[np.int64]
    notes: NDArray[np.int64]
    clicked: NDArray[np.float32]
    requests: Mapping[int, Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)


def read_impressions(source: QilinSource, config: str, *, limit: int | None = None) -> Impressions:
    """What was shown in the first `limit` rows of a config, each note of a request once.

    DataError for columns that are missing, and where nothing was shown.
    """
    if config not in CONFIGS:
        raise unknown("config", config, CONFIGS)
    kind = ["query_from_type"] if config.startswith("search") else []
    columns = ["user_idx", "recent_clicked_note_idxs", DETAILS_COLUMNS[config], *kind]
    numbers = [*NOTE_KINDS, *NOTE_NUMBERS, *COUNTERS]
    source.check({config: columns, "notes": numbers, "user_feat": [*USER_KINDS, *USER_NUMBERS]})
    requests = {row["row"]: row for row in source.rows(config, columns, limit=limit)}
    rows, notes, clicked = [], [], []
    for number, row in requests.items():
        clicks: dict[int, bool] = {}
        for shown in row[DETAILS_COLUMNS[config]] or ():
            clicks[shown["note_idx"]] = clicks.get(shown["note_idx"], False) or shown["click"] > 0
        rows += [number] * len(clicks)
        notes += list(clicks)
        clicked += list(clicks.values())
    if not rows:
        raise DataError(f"{source.name}: no row of {config!r} shows a note")
    return Impressions(np.array(rows), np.array(notes), np.array(clicked, dtype=np.float32), requests)


@dataclass(frozen=True)
class FeatureEncoder:
    """What training has seen: the values of each kind (index from 1), mean and deviation of the numbers."""

    kinds: dict[str, dict[str, int]]
    mean: list[float]
    deviation: list[float]

    @classmethod
    def fit(cls, source: QilinSource, shown: Impressions) -> FeatureEncoder:
        """Learns kinds and scales from the training impressions."""
        table = _Table.read(source, shown)
        kinds: dict[str, dict[str, int]] = {}
        for name, values in table.kinds.items():
            kinds[name] = {value: number for number, value in enumerate(dict.fromkeys(values), start=UNSEEN + 1)}
        deviation = table.numbers.std(0)
        # A number that never varies says nothing.
        deviation[deviation < 1e-9] = 1.0
        return cls(kinds, table.numbers.mean(0).tolist(), deviation.tolist())

    def encode(self, source: QilinSource, shown: Impressions) -> Features:
        """`numbers` float32 (entries, numbers), `history` int64 (entries, HISTORY), each kind int64 (entries,)."""
        table = _Table.read(source, shown)
        numbers = (table.numbers - np.array(self.mean)) / np.array(self.deviation)
        encoded: Features = {"numbers": numbers.astype(np.float32)}
        for name, values in table.kinds.items():
            known = self.kinds[name]
            encoded[name] = np.array([known.get(value, UNSEEN) for value in values], dtype=np.int64)
        known = self.kinds["note_idx"]
        history = np.full((len(shown), HISTORY), UNSEEN, dtype=np.int64)
        for entry, row in enumerate(shown.rows.tolist()):
            for place, note in enumerate((shown.requests[row]["recent_clicked_note_idxs"] or ())[:HISTORY]):
                history[entry, place] = known.get(str(note), UNSEEN)
        return {**encoded, "history": history}


@dataclass(frozen=True)
class _Table:
    """Impressions joined with their notes and users, before anything is encoded."""

    numbers: NDArray[np.float64]
    kinds: dict[str, list[str]]

    @classmethod
    def read(cls, source: QilinSource, shown: Impressions) -> _Table:
        notes = _by_id(source, "notes", "note_idx", set(shown.notes.tolist()), [*NOTE_NUMBERS, *COUNTERS, *NOTE_KINDS])
        asked = [shown.requests[row] for row in shown.rows.tolist()]
        users = _by_id(
            source, "user_feat", "user_idx", {one["user_idx"] for one in asked}, [*USER_NUMBERS, *USER_KINDS]
        )
        numbers: list[list[float]] = []
        kinds: dict[str, list[str]] = {name: [] for name in ("query_from_type", *NOTE_KINDS, *USER_KINDS)}
        for request, note_idx in zip(asked, shown.notes.tolist(), strict=True):
            note, user = notes[note_idx], users[request["user_idx"]]
            numbers.append(
                [_scaled(note[name]) for name in (*NOTE_NUMBERS, *COUNTERS)]
                + [_scaled(user[name]) for name in USER_NUMBERS]
            )
            for names, values in ((NOTE_KINDS, note), (USER_KINDS, user), (("query_from_type",), request)):
                for name in names:
                    kinds[name].append(str(values.get(name)))
        return cls(np.array(numbers, dtype=np.float64), kinds)


def _by_id(
    source: QilinSource, config: str, key: str, wanted: set[int], columns: Iterable[str]
) -> dict[int, Mapping[str, Any]]:
    """The rows with these ids. DataError for ids that are not there."""
    found: dict[int, Mapping[str, Any]] = {}
    for batch in source.iter_rows(config, list(dict.fromkeys([key, *columns])), batch_size=8192):
        found.update({row[key]: row for row in batch if row[key] in wanted})
    if missing := sorted(wanted - found.keys()):
        raise DataError(f"{source.name}: {config} has no features of {key} {missing[0]} ({len(missing)} are missing)")
    return found


def _scaled(value: Any) -> float:
    """Counts span many orders of magnitude: the sign times log(1 + size); null and NaN are 0."""
    number = float(value) if value is not None and not math.isnan(value) else 0.0
    return float(np.sign(number) * np.log1p(abs(number)))


def one_hot(features: Features, encoder: FeatureEncoder, *, leave_out: Sequence[str] = ()) -> NDArray[np.float32]:
    """The same features for a linear model: numbers, and a column for each kind's value but those of `leave_out`."""
    parts = [features["numbers"]]
    for name, known in encoder.kinds.items():
        if name not in leave_out:
            parts.append(np.eye(len(known) + 1, dtype=np.float32)[features[name]])
    return np.concatenate(parts, axis=1)
