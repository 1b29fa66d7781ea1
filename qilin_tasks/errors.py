"""The errors of this package: each message gives the bad value, the choices and the way out."""

from __future__ import annotations

from collections.abc import Iterable


class QilinTasksError(Exception):
    """Base of every error raised on purpose: what is wrong is outside the model, so it must never become a score."""


class SettingError(QilinTasksError, ValueError):
    """A setting (metadata, flag, environment variable) has a value that is not one of its choices."""


class DataError(QilinTasksError, ValueError):
    """A data set is missing, damaged, or not in the published layout."""


class DependencyError(QilinTasksError, ImportError):
    """A package or a model that a setting asks for can't be loaded; the message says how to get it."""


def unknown(kind: str, value: object, choices: Iterable[str]) -> SettingError:
    """`context 'bm26': choose from bert, bm25, na, oracle`, as an error to raise."""
    return SettingError(f"{kind} {value!r}: choose from {', '.join(sorted(choices))}")
