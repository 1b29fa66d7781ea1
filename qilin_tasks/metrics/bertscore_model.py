"""The encoder of BERTScore with its weights: loaded once a process, float32, and kept going when a GPU runs full."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qilin_tasks.metrics.bertscore_encoder import (
    from_hub,
    load_config,
    load_tokenizer,
    not_loadable,
    resolve_device,
    token_limit,
)
from qilin_tasks.text.tokens import clean

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


class Tokens(NamedTuple):
    """Token ids of one text with its special tokens (none for an empty text), and whether it was cut at the limit."""

    ids: tuple[int, ...]
    cut: bool


@lru_cache(maxsize=2)
def load_encoder(model: str, *, layer: int, device: str) -> Encoder:
    """The encoder for these settings, once a process."""
    return Encoder(model, layer=layer, device=device)


class Encoder:
    """Layer `layer` of a transformer encoder, as bert-score prunes it. `device` is where it runs now."""

    def __init__(self, model: str, *, layer: int, device: str) -> None:
        self.config = load_config(model, layer=layer)
        self.tokenizer = load_tokenizer(model)
        self.network = _load_network(model, self.config)
        special = (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)
        self._uncounted = {token for token in special if token is not None}
        self.device = "cpu"
        self._to(resolve_device(device))

    def _to(self, device: str) -> None:
        try:
            self.network.to(device)
            self.device = device
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self.fall_back_to_cpu()

    def fall_back_to_cpu(self) -> None:
        """Move the weights off the accelerator for the rest of the process."""
        logger.warning("BERTScore: no memory left on %s, going on on the CPU", self.device)
        self.network.to("cpu")
        self.device = "cpu"
        _empty_cache()

    def tokenize(self, texts: Sequence[str], *, max_tokens: int | None) -> list[Tokens]:
        """Token ids of each text, stripped and cut at the limit. A text without any token of its own is ()."""
        limit = token_limit(self.tokenizer, self.config, max_tokens)
        stripped = [clean(text).strip() for text in texts]
        special = self.tokenizer.num_special_tokens_to_add()
        rows = self._ids(stripped, truncation=True, max_length=limit)
        full = [i for i, ids in enumerate(rows) if len(ids) >= limit]
        whole = self._ids([stripped[i] for i in full])
        cut = {i for i, ids in zip(full, whole, strict=True) if len(ids) > limit}
        return [
            Tokens(tuple(ids) if len(ids) > special and not self._uncounted.issuperset(ids) else (), i in cut)
            for i, ids in enumerate(rows)
        ]

    def _ids(self, texts: list[str], **options: Any) -> list[list[int]]:
        if not texts:
            return []
        encoded = self.tokenizer(
            texts, return_attention_mask=False, return_token_type_ids=False, verbose=False, **options
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def counted(self, ids: Iterable[int]) -> list[bool]:
        """True for each token that counts in the mean: all but [CLS] and [SEP], wherever they are, as in bert-score."""
        return [token not in self._uncounted for token in ids]

    def unknown_rate(self, ids: Sequence[int]) -> float:
        """The share of the counted tokens that are the tokenizer's unknown token, 0..1; 0 where there is none."""
        counted = [token for token in ids if token not in self._uncounted]
        unknown = self.tokenizer.unk_token_id
        return counted.count(unknown) / len(counted) if counted and unknown is not None else 0.0

    def forward(self, batch: Sequence[Sequence[int]]) -> torch.Tensor:
        """Unit vectors, texts x longest text x dimension, on `device`; past a text's end they mean nothing."""
        import torch

        longest = max(map(len, batch))
        ids = np.full((len(batch), longest), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros((len(batch), longest), dtype=np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        with torch.inference_mode(), full_precision():
            hidden = self.network(
                torch.from_numpy(ids).to(self.device), attention_mask=torch.from_numpy(mask).to(self.device)
            )[0]
            vectors: torch.Tensor = hidden / torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
            return vectors

    def forward_in_batches(
        self, rows: Sequence[Sequence[int]], *, batch_size: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """(position of the first row, unit vectors) of consecutive batches; halves the batch when memory runs out.

        At a batch of one the model moves to the CPU and the batch size is what it was.
        """
        start, size = 0, batch_size
        while start < len(rows):
            batch = rows[start : start + size]
            vectors = self._forward_if_memory(batch, last_resort=size == 1 and self.device == "cpu")
            if vectors is not None:
                yield start, vectors
                start += len(batch)
            elif size > 1:
                size = max(1, min(size, len(batch)) // 2)
                logger.warning("BERTScore: no memory left on %s, batches of %d from here", self.device, size)
            else:
                self.fall_back_to_cpu()
                size = batch_size

    def _forward_if_memory(self, batch: Sequence[Sequence[int]], *, last_resort: bool) -> torch.Tensor | None:
        """None where memory ran out: by then the error, which holds on to the tensors of its frames, is gone."""
        try:
            return self.forward(batch)
        except RuntimeError as error:
            if last_resort or not is_out_of_memory(error):
                raise
        _empty_cache()
        return None


def _load_network(model: str, config: Any) -> Any:
    """Weights in float32 whatever the checkpoint's type; DependencyError where any of them is missing.

    transformers fills missing weights with random numbers and only logs it: a wrong folder would turn into scores.
    """
    with _quiet_transformers():
        network, info = from_hub(
            "weights", model, "AutoModel", config=config, use_safetensors=True, output_loading_info=True
        )
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing or info["mismatched_keys"]:
        names = missing or [key[0] for key in info["mismatched_keys"]]
        raise not_loadable("weights", model, ValueError(f"no fitting weights for {', '.join(names[:3])}"))
    if config.is_encoder_decoder:
        network = network.get_encoder()
    return network.float().eval()


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Without its table of the layers that are left out on purpose; missing weights are our own check."""
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def full_precision() -> Iterator[None]:
    """float32 products in float32: vLLM and others allow TF32 or autocast for the whole process."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch ran out of memory, as its own class or in the words of cuBLAS and the CPU allocator."""
    import torch

    words = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "can't allocate memory")
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(word in str(error) for word in words)


def _empty_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
