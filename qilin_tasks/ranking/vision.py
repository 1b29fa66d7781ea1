"""Documents of the tasks with covers: candidates with the covers that can be used."""

from __future__ import annotations

import logging
from typing import Any

from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.images import PLACEHOLDER, VARIABLE, images_root, shows_images, usable_images
from qilin_tasks.ranking.settings import GradedVisionSettings, VisionSettings

logger = logging.getLogger(__name__)


def build_vision(settings: VisionSettings) -> list[dict[str, Any]]:
    """Documents in which a cover that can't be used is none.

    Without QILIN_IMAGES none is shown, one warning says so, and the task asks any model by text alone.
    """
    documents = build_ranking(settings, images=True)
    for doc in documents:
        del doc["history_images"]
    usable: set[str] = set()
    if shows_images():
        usable = usable_images(_candidate_covers(documents), root=images_root())
    else:
        logger.warning("qilin_search_vlm: %s is not set, so no cover is shown: the notes are ranked by text", VARIABLE)
    return [_with_usable(doc, usable) for doc in documents]


def build_graded_vision(settings: GradedVisionSettings) -> list[dict[str, Any]]:
    """Documents whose candidates are graded one by one, with `history_images` of the notes that the user clicked.

    Raises SettingError without QILIN_IMAGES, before any data are read: the system of the paper sees its covers.
    """
    root = images_root()
    documents = build_ranking(settings, images=True)
    clicked = {path for doc in documents for path in doc["history_images"]}
    usable = usable_images(_candidate_covers(documents) | clicked, root=root)
    for doc in documents:
        doc["history_images"] = [path if path in usable else "" for path in doc["history_images"]]
    return [_with_usable(doc, usable) for doc in documents]


def _candidate_covers(documents: list[dict[str, Any]]) -> set[str]:
    return {note["image"] for doc in documents for note in doc["candidates"]}


def _with_usable(doc: dict[str, Any], usable: set[str]) -> dict[str, Any]:
    """The document without covers that can't be used."""
    doc["query"] = _no_placeholder(doc["query"])
    for note in doc["candidates"]:
        note["image"] = note["image"] if note["image"] in usable else ""
        note["title"], note["content"] = _no_placeholder(note["title"]), _no_placeholder(note["content"])
    doc["images"] = [note["image"] for note in doc["candidates"] if note["image"]]
    doc["images_missing"] = len(doc["candidates"]) - len(doc["images"])
    return doc


def _no_placeholder(text: str) -> str:
    """A user's own `<image>` would be taken for the place of a picture."""
    return text.replace(PLACEHOLDER, "＜image＞")
