"""Texts to vectors: sentence-transformers models, plain BERTs with mean pooling, vLLM's pooling runner."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DependencyError, unknown

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors whose dot product is the similarity; `signature` names all that shapes them."""

    signature: str
    dimension: int

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """float32 of shape (texts, dimension)."""


def model_identity(model: str) -> str:
    """The name of a hub model; for a folder a hash of its settings and weights' sizes, wherever the folder lies."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".safetensors", ".bin", ".txt"):
            digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}".encode())
            if path.suffix == ".json":
                digest.update(path.read_bytes())
            else:
                with path.open("rb") as file:
                    digest.update(file.read(2**20))
    return f"{folder.name}@{digest.hexdigest()[:12]}"


def devices() -> list[str]:
    """All visible GPUs, else the CPU."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [f"cuda:{number}" for number in range(count)] or ["cpu"]


def _failed(model: str, error: Exception) -> DependencyError:
    return DependencyError(
        f"model {model!r} can't be loaded ({type(error).__name__}: {error}); give a folder or a hub name, and install "
        "'qilin-tasks[retrieval]'"
    )


class SentenceTransformersEncoder:
    """A bi-encoder with its own pooling, prompts and similarity (vectors of unit length where that is the cosine)."""

    def __init__(self, model: str, *, batch_size: int, max_length: int | None) -> None:
        try:
            from sentence_transformers import SentenceTransformer

            found = devices()
            self._model = SentenceTransformer(model, device=found[0])
        except (ImportError, OSError, ValueError) as error:
            raise _failed(model, error) from error
        if max_length is not None:
            self._model.max_seq_length = max_length
        # One process for each GPU, kept for all chunks.
        self._several = {"pool": self._model.start_multi_process_pool(found)} if len(found) > 1 else {}
        self._batch_size = batch_size
        self._unit = self._model.similarity_fn_name == "cosine"
        self.dimension = int(self._model.get_embedding_dimension())
        self.signature = json.dumps(
            {
                "backend": "sentence-transformers",
                "model": model_identity(model),
                "max_length": int(self._model.max_seq_length),
                "unit": self._unit,
            },
            sort_keys=True,
        )

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        encode = self._model.encode_query if query else self._model.encode_document
        vectors = encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=self._unit,
            convert_to_numpy=True,
            show_progress_bar=False,
            **self._several,
        )
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), self.dimension)


class MeanPoolingEncoder:
    """The mean of a BERT's last hidden states over the text's tokens, compared by dot product: the paper's BERT_bi."""

    def __init__(self, model: str, *, batch_size: int, max_length: int | None) -> None:
        try:
            from transformers import AutoModel, AutoTokenizer

            self._models = [AutoModel.from_pretrained(model).to(device).eval() for device in devices()]
            # One each: a fast tokenizer can't be used by two threads at a time ("Already borrowed").
            self._tokenizers = [AutoTokenizer.from_pretrained(model) for _ in self._models]
        except (ImportError, OSError, ValueError) as error:
            raise _failed(model, error) from error
        self._batch_size = batch_size
        self._max_length = max_length or 256
        self.dimension = int(self._models[0].config.hidden_size)
        self.signature = json.dumps(
            {"backend": "mean-pooling", "model": model_identity(model), "max_length": self._max_length}, sort_keys=True
        )

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        batches = [order[start : start + self._batch_size] for start in range(0, len(order), self._batch_size)]

        def work(place: int) -> None:
            for chosen in batches[place :: len(self._models)]:
                vectors[chosen] = self._means([texts[position] for position in chosen], place)

        # A thread for each GPU: they wait for their own device most of the time.
        with ThreadPoolExecutor(max_workers=len(self._models)) as pool:
            list(pool.map(work, range(len(self._models))))
        return vectors

    def _means(self, texts: list[str], place: int) -> Vectors:
        import torch

        model, tokenizer = self._models[place], self._tokenizers[place]
        batch = tokenizer(texts, padding=True, truncation=True, max_length=self._max_length, return_tensors="pt").to(
            model.device
        )
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
            vectors: Vectors = mean.float().cpu().numpy()
        return vectors


class VllmEncoder:
    """vLLM's pooling runner; its pooling and normalisation are those the model's settings name."""

    def __init__(self, model: str, *, batch_size: int, max_length: int | None) -> None:
        try:
            from vllm import LLM

            self._model: Any = LLM(
                model,
                runner="pooling",
                dtype="auto",
                enforce_eager=True,
                max_model_len=max_length,
                disable_log_stats=True,
            )
        except ImportError as error:
            raise _failed(model, error) from error
        self._max_length = max_length
        self.dimension = len(self._embed(["a"])[0])
        self.signature = json.dumps(
            {"backend": "vllm", "model": model_identity(model), "max_length": max_length}, sort_keys=True
        )

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        # -1: as many tokens as the model takes.
        outputs = self._model.embed(list(texts), use_tqdm=False, tokenization_kwargs={"truncate_prompt_tokens": -1})
        return [output.outputs.embedding for output in outputs]

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        return np.array(self._embed(texts), dtype=np.float32).reshape(len(texts), self.dimension)


BACKENDS: dict[str, Callable[..., Encoder]] = {
    "sentence-transformers": SentenceTransformersEncoder,
    "mean-pooling": MeanPoolingEncoder,
    "vllm": VllmEncoder,
}


def load_encoder(model: str, *, backend: str, batch_size: int, max_length: int | None) -> Encoder:
    """A model behind one of BACKENDS. SettingError for another backend, DependencyError where it can't be loaded."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    return BACKENDS[backend](model, batch_size=batch_size, max_length=max_length)
