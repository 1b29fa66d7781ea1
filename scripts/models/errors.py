"""What can go wrong while a model is made, as messages that say what to do."""

from __future__ import annotations


class ModelError(Exception):
    """A model can't be made; the text says why and what helps."""


class DownloadError(ModelError):
    """A package could not be had: no network, no pip, or an index that doesn't carry it."""
