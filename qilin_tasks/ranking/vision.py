"""Documents of `qilin_search_vlm`: candidates with the covers that can be used."""

from __future__ import annotations

import logging
from typing import Any

from qilin_tasks.ranking.documents import build_ranking
from qilin_tasks.ranking.images import PLACEHOLDER, VARIABLE, images_root, shows_images, usable_images
from qilin_tasks.ranking.settings import VisionSettings

logger = logging.getLogger(__name__)


def build_vision(settings: VisionSettings) -> list[dict[str, Any]]:
    """Documents in which a cover that can't be used is none.

    Without QILIN_IMAGES none is shown, one warning says so, and the task asks any model by text alone.
    """
    documents = build_ranking(settings, images=True)
    covers = {note["image"] for doc in documents for note in doc["candidates"] if note["image"]}
    usable: set[str] = set()
    if shows_images():
        usable = usable_images(covers, root=images_root())
    else:
        logger.warning("qilin_search_vlm: %s is not set, so no cover is shown: the notes are ranked by text", VARIABLE)
    for doc in documents:
        doc["query"] = _no_placeholder(doc["query"])
        for note in doc["candidates"]:
            note["image"] = note["image"] if note["image"] in usable else ""
            note["title"], note["content"] = _no_placeholder(note["title"]), _no_placeholder(note["content"])
        doc["images"] = [note["image"] for note in doc["candidates"] if note["image"]]
        doc["images_missing"] = len(doc["candidates"]) - len(doc["images"])
    return documents


def _no_placeholder(text: str) -> str:
    """A user's own `<image>` would be taken for the place of a picture."""
    return text.replace(PLACEHOLDER, "＜image＞")
