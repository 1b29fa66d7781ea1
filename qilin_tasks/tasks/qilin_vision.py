"""Qilin search with cover images, for the harness's multimodal models (`hf-multimodal`, `vllm-vlm`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import datasets

from qilin_tasks.candidates.documents import build_ranking
from qilin_tasks.candidates.images import PLACEHOLDER, VARIABLE, Covers, images_root, usable_images
from qilin_tasks.candidates.settings import VisionSettings
from qilin_tasks.settings import Settings
from qilin_tasks.tasks.qilin_ranking import CANDIDATE, FEATURES, ListwiseTask

VISION_FEATURES = {
    **FEATURES,
    "candidates": [{**CANDIDATE, "image": datasets.Value("string")}],
    "images": [datasets.Value("string")],
    "images_missing": datasets.Value("int64"),
}
MISSING_METRIC = {"metric": "images_missing", "aggregation": "mean", "higher_is_better": False}


def load(**metadata: Any) -> dict[str, datasets.Dataset]:
    """The `custom_dataset` of `qilin_search_vlm`, as the split `test`; a cover that can't be used is none.

    Without QILIN_IMAGES the task can be listed and looked at; what asks a model then stops before it does.
    """
    documents = build_ranking(VisionSettings.from_metadata(metadata), images=True)
    covers = {note["image"] for doc in documents for note in doc["candidates"] if note["image"]}
    usable = usable_images(covers, root=images_root()) if os.environ.get(VARIABLE) else covers
    for doc in documents:
        doc["query"] = _no_placeholder(doc["query"])
        for note in doc["candidates"]:
            note["image"] = note["image"] if note["image"] in usable else ""
            note["title"], note["content"] = _no_placeholder(note["title"]), _no_placeholder(note["content"])
        doc["images"] = [note["image"] for note in doc["candidates"] if note["image"]]
        doc["images_missing"] = len(doc["candidates"]) - len(doc["images"])
    return {"test": datasets.Dataset.from_list(documents, features=datasets.Features(VISION_FEATURES))}


def _no_placeholder(text: str) -> str:
    """A user's own `<image>` would be taken for the place of a picture."""
    return text.replace(PLACEHOLDER, "＜image＞")


class VisionTask(ListwiseTask):
    """Listwise ranking in which each candidate shows its cover where it has one; images are opened when asked for."""

    FAMILY: ClassVar[str] = "qilin-vision"
    SETTINGS: ClassVar[type[Settings]] = VisionSettings
    MULTIMODAL = True

    def __init__(
        self, data_dir: Any = None, cache_dir: Any = None, download_mode: Any = None, config: Any = None
    ) -> None:
        config = {**(config or {})}
        config["metric_list"] = [*(config.get("metric_list") or ()), MISSING_METRIC]
        super().__init__(data_dir, cache_dir, download_mode, config)

    def build_all_requests(self, **kwargs: Any) -> None:
        images_root()
        super().build_all_requests(**kwargs)

    def doc_to_image(self, doc: dict[str, Any], doc_to_image: Any = None) -> Covers:
        """The covers in the order of the placeholders of the prompt."""
        shown = doc.get("window") or range(1, len(doc["candidates"]) + 1)
        paths = [doc["candidates"][i - 1]["image"] for i in shown]
        return Covers([path for path in paths if path], max_side=self.settings.image_max_side)

    def extra_arguments(self, doc: dict[str, Any], ids: Sequence[int]) -> tuple[Any, ...]:
        return ({"visual": self.doc_to_image({**doc, "window": list(ids)})},)

    def signature_parts(self) -> dict[str, Any]:
        return {**super().signature_parts(), "image": self.settings.image_max_side}
