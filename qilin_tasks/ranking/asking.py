"""How a request is asked: its windows listwise, its candidates one by one, with covers or without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qilin_tasks.family import Asking, Document, Kind, Request
from qilin_tasks.ranking.images import Covers, StackedCover, images_root, shows_images
from qilin_tasks.ranking.settings import GradedVisionSettings, VisionSettings


class Windows(Asking):
    """One prompt a window, in which the model numbers the candidates from 1."""

    def views(self, doc: Document) -> list[Document]:
        return [
            {
                "query": doc["query"],
                "history": doc["history"],
                "candidates": [doc["candidates"][i - 1] for i in ids],
            }
            for ids in doc["windows"]
        ]

    def requests(self, doc: Document, prompts: Sequence[str], choices: Sequence[str]) -> list[Request]:
        return [
            Request({**doc, "window": ids}, (prompt,), images=self.images(doc, ids))
            for prompt, ids in zip(prompts, doc["windows"], strict=True)
        ]

    def images(self, doc: Document, ids: Sequence[int]) -> Any:
        """What a request shows besides its text."""
        return None


class WindowsWithCovers(Windows):
    """Each candidate shows its cover where it has one, in the order of the prompt's placeholders."""

    def __init__(self, settings: VisionSettings) -> None:
        super().__init__(settings)
        self.multimodal = shows_images()

    def check(self) -> None:
        if self.multimodal:
            images_root()

    def images(self, doc: Document, ids: Sequence[int]) -> Covers | None:
        if not self.multimodal:
            return None
        paths = [doc["candidates"][i - 1]["image"] for i in ids]
        return Covers([path for path in paths if path], max_side=self.settings.image_max_side)


class OneByOne(Asking):
    """One prompt a candidate."""

    def views(self, doc: Document) -> list[Document]:
        return [
            {"query": doc["query"], "history": doc["history"], "candidate": candidate}
            for candidate in doc["candidates"]
        ]


class GradesWithCovers(OneByOne):
    """The model writes a grade of each candidate, whose cover it sees; in recommendation below the clicked notes'."""

    multimodal = True
    settings: GradedVisionSettings

    def check(self) -> None:
        images_root()

    def requests(self, doc: Document, prompts: Sequence[str], choices: Sequence[str]) -> list[Request]:
        clicked = doc["history_images"] if self.settings.config == "recommendation_test" else None
        return [
            Request(
                {**doc, "place": place},
                (prompt,),
                images=StackedCover(candidate["image"], clicked, side=self.settings.image_side),
            )
            for place, (prompt, candidate) in enumerate(zip(prompts, doc["candidates"], strict=True), start=1)
        ]


class YesAndNo(OneByOne):
    """Requests 0..n-1 score the first choice (yes), n..2n-1 the second (no)."""

    kind: Kind = "loglikelihood"

    def requests(self, doc: Document, prompts: Sequence[str], choices: Sequence[str]) -> list[Request]:
        return [Request(doc, (prompt, choice)) for choice in choices for prompt in prompts]
