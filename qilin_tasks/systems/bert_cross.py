"""A cross-encoder's logit for query and note: the paper's BERT_cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.hub_reach import reach_hub
from qilin_tasks.retrieval.encoders import devices, load_failed, model_identity
from qilin_tasks.retrieval.rerank import check_weights
from qilin_tasks.sources.qilin import Note
from qilin_tasks.systems.system import Exposed, SystemSettings

#: Both official configurations.
MAX_LENGTH = 512


def joined(query: str, note: Note, how: str) -> tuple[str, ...]:
    """The two segments of a query and a note, or as a `string` the official code's one, title and content unparted."""
    return (f"{query} [SEP] {note.title}{note.content}",) if how == "string" else (query, note.text)


class CrossEncoder:
    """transformers' sequence classifier with one output, a copy and a thread for each GPU.

    The logit itself ranks: behind a sigmoid, sure scores would round to 1 and tie.
    """

    reads_notes: ClassVar[bool] = True
    needs: ClassVar[str | None] = "model"

    def __init__(self, settings: SystemSettings) -> None:
        name = str(settings.model)
        self._max_length = settings.max_length or MAX_LENGTH
        self._settings = settings
        reach_hub(name)
        try:
            from transformers import AutoModelForSequenceClassification, AutoTokenizer

            model, info = AutoModelForSequenceClassification.from_pretrained(name, output_loading_info=True)
            found = devices(settings.device)
            self._tokenizers = [AutoTokenizer.from_pretrained(name) for _ in found]
            others = [AutoModelForSequenceClassification.from_pretrained(name) for _ in found[1:]]
            self._models = [one.to(device).eval() for one, device in zip([model, *others], found, strict=True)]
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise load_failed(name, error) from error
        check_weights(name, info)
        if model.config.num_labels != 1:
            raise DataError(f"model {name!r} has {model.config.num_labels} outputs; ranking needs one")
        longest = getattr(model.config, "max_position_embeddings", None)
        if longest is not None and self._max_length > longest:
            raise SettingError(
                f"--max-length {self._max_length}: the model {name!r} takes {longest} tokens at most; pass that or less"
            )
        self._recipe: dict[str, str | int] = {
            "model": model_identity(name),
            "tokens": self._max_length,
            "input": settings.input,
        }

    def recipe(self) -> Mapping[str, str | int]:
        return self._recipe

    def score(self, requests: Sequence[Exposed]) -> list[list[float | None]]:
        pairs = [joined(one.query, note, self._settings.input) for one in requests for note in one.notes]
        values = iter(self._logits(pairs).tolist())
        return [[next(values) for _ in one.notes] for one in requests]

    def _logits(self, pairs: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
        logits = np.zeros(len(pairs))
        # Long ones first: batches of like lengths need little padding, and memory runs out at once or never.
        order = sorted(range(len(pairs)), key=lambda place: -sum(map(len, pairs[place])))
        size = self._settings.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]

        def work(place: int) -> None:
            for chosen in batches[place :: len(self._models)]:
                logits[chosen] = self._batch([pairs[one] for one in chosen], place)

        with ThreadPoolExecutor(max_workers=len(self._models)) as pool:
            list(pool.map(work, range(len(self._models))))
        return logits

    def _batch(self, pairs: Sequence[tuple[str, ...]], place: int) -> NDArray[Any]:
        import torch

        model, tokenizer = self._models[place], self._tokenizers[place]
        columns = [list(column) for column in zip(*pairs, strict=True)]
        batch = tokenizer(*columns, padding=True, truncation=True, max_length=self._max_length, return_tensors="pt")
        with torch.inference_mode():
            values: NDArray[Any] = model(**batch.to(model.device)).logits[:, 0].float().cpu().numpy()
        return values
