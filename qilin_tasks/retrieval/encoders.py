"""Texts to vectors: sentence-transformers models, plain BERTs with mean pooling, vLLM's pooling runner."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qilin_tasks.errors import DependencyError, unknown
from qilin_tasks.hub_reach import reach_hub

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors whose dot product is the similarity; `signature` names all that shapes them."""

    signature: str
    dimension: int

    def __hash__(self) -> int:
        """Encoders are told apart by identity."""

    def unknown_token_rate(self, texts: Sequence[str]) -> float:
        """The share of the texts' tokens that the model does not know, 0..1."""

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


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How texts are encoded: `device` is auto (all GPUs, else the CPU) or one of torch's names.

    A prompt stands before each query or document; None leaves it to the model's own settings, "" is none at all.
    """

    batch_size: int
    max_length: int | None = None
    device: str = "auto"
    query_prompt: str | None = None
    document_prompt: str | None = None

    def prompt(self, *, query: bool) -> str | None:
        return self.query_prompt if query else self.document_prompt

    def signed(self, **parts: Any) -> str:
        """The parts and, where they are given, the prompts as one line."""
        prompts = {"query_prompt": self.query_prompt, "document_prompt": self.document_prompt}
        given = {name: prompt for name, prompt in prompts.items() if prompt is not None}
        return json.dumps({**parts, **given}, sort_keys=True)


def devices(chosen: str = "auto") -> list[str]:
    """All visible GPUs, else the CPU; or the chosen one."""
    if chosen != "auto":
        return [chosen]
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [f"cuda:{number}" for number in range(count)] or ["cpu"]


def load_failed(model: str, error: Exception) -> DependencyError:
    return DependencyError(
        f"model {model!r} can't be loaded ({type(error).__name__}: {error}); give a folder or a hub name, and install "
        "'qilin-tasks[retrieval]'"
    )


class SentenceTransformersEncoder:
    """A bi-encoder with its own pooling, prompts and similarity (vectors of unit length where that is the cosine)."""

    def __init__(self, model: str, settings: EncoderSettings) -> None:
        reach_hub(model)
        try:
            from sentence_transformers import SentenceTransformer

            found = devices(settings.device)
            self._model = SentenceTransformer(model, device=found[0])
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise load_failed(model, error) from error
        if settings.max_length is not None:
            self._model.max_seq_length = settings.max_length
        # One process for each GPU, kept for all chunks.
        self._several = {"pool": self._model.start_multi_process_pool(found)} if len(found) > 1 else {}
        self._settings = settings
        self._unit = self._model.similarity_fn_name == "cosine"
        self.dimension = int(self._model.get_embedding_dimension())
        self.signature = settings.signed(
            backend="sentence-transformers",
            model=model_identity(model),
            max_length=int(self._model.max_seq_length),
            unit=self._unit,
        )

    def unknown_token_rate(self, texts: Sequence[str]) -> float:
        return unknown_token_rate(getattr(self._model, "tokenizer", None), texts)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        encode = self._model.encode_query if query else self._model.encode_document
        vectors = encode(
            list(texts),
            prompt=self._settings.prompt(query=query),
            batch_size=self._settings.batch_size,
            normalize_embeddings=self._unit,
            convert_to_numpy=True,
            show_progress_bar=False,
            **self._several,
        )
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), self.dimension)


class MeanPoolingEncoder:
    """The mean of a BERT's last hidden states over the text's tokens, compared by dot product: the paper's BERT_bi."""

    def __init__(self, model: str, settings: EncoderSettings) -> None:
        reach_hub(model)
        try:
            from transformers import AutoModel, AutoTokenizer

            found = devices(settings.device)
            self._models = [AutoModel.from_pretrained(model).to(device).eval() for device in found]
            # One each: a fast tokenizer can't be used by two threads at a time ("Already borrowed").
            self._tokenizers = [AutoTokenizer.from_pretrained(model) for _ in self._models]
        except (ImportError, OSError, ValueError, RuntimeError) as error:
            raise load_failed(model, error) from error
        self._settings = settings
        self._max_length = settings.max_length or 256
        self.dimension = int(self._models[0].config.hidden_size)
        self.signature = settings.signed(
            backend="mean-pooling", model=model_identity(model), max_length=self._max_length
        )

    def unknown_token_rate(self, texts: Sequence[str]) -> float:
        return unknown_token_rate(self._tokenizers[0], texts)

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if prompt := self._settings.prompt(query=query):
            texts = [prompt + text for text in texts]
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        batches = [
            order[start : start + self._settings.batch_size]
            for start in range(0, len(order), self._settings.batch_size)
        ]

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

    def __init__(self, model: str, settings: EncoderSettings) -> None:
        try:
            from vllm import LLM

            self._model: Any = LLM(
                model,
                runner="pooling",
                dtype="auto",
                enforce_eager=True,
                max_model_len=settings.max_length,
                disable_log_stats=True,
            )
        except ImportError as error:
            raise load_failed(model, error) from error
        self._settings = settings
        self.dimension = len(self._embed(["a"])[0])
        self.signature = settings.signed(backend="vllm", model=model_identity(model), max_length=settings.max_length)

    def unknown_token_rate(self, texts: Sequence[str]) -> float:
        return unknown_token_rate(self._model.get_tokenizer(), texts)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        # -1: as many tokens as the model takes.
        outputs = self._model.embed(list(texts), use_tqdm=False, tokenization_kwargs={"truncate_prompt_tokens": -1})
        return [output.outputs.embedding for output in outputs]

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if prompt := self._settings.prompt(query=query):
            texts = [prompt + text for text in texts]
        return np.array(self._embed(texts), dtype=np.float32).reshape(len(texts), self.dimension)


BACKENDS: dict[str, Callable[..., Encoder]] = {
    "sentence-transformers": SentenceTransformersEncoder,
    "mean-pooling": MeanPoolingEncoder,
    "vllm": VllmEncoder,
}


def load_encoder(
    model: str,
    *,
    backend: str,
    batch_size: int,
    max_length: int | None,
    device: str = "auto",
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> Encoder:
    """A model behind one of BACKENDS. SettingError for another backend, DependencyError where it can't be loaded."""
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    settings = EncoderSettings(
        batch_size=batch_size,
        max_length=max_length,
        device=device,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )
    return BACKENDS[backend](model, settings)


# Beyond this share of unknown tokens, texts that differ look alike.
MOST_UNKNOWN = 0.1
_LOOKED_AT = 1_000


def unknown_token_rate(tokenizer: Any, texts: Sequence[str]) -> float:
    """The share of the tokens of the texts (the first 1,000 of them) that are the tokenizer's unknown token, 0..1.

    0 for a tokenizer that has none, as those over bytes: they know every text.
    """
    unknown_id = getattr(tokenizer, "unk_token_id", None)
    kept = [text for text in texts[:_LOOKED_AT] if text.strip()]
    if unknown_id is None or not kept:
        return 0.0
    rows = tokenizer(kept, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
    total = sum(map(len, rows))
    return sum(row.count(unknown_id) for row in rows) / total if total else 0.0


def warn_of_unknown_tokens(encoder: Encoder, model: str, texts: Sequence[str], *, what: str) -> None:
    """Logs a warning where the model knows too few of the texts' tokens."""
    rate = encoder.unknown_token_rate(texts)
    if rate > MOST_UNKNOWN:
        logger.warning(
            "model %r does not know %.0f %% of the tokens of the %s: different texts look alike to it; choose a model "
            "for their language",
            model,
            100 * rate,
            what,
        )
