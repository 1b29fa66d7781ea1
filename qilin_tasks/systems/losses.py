"""What is trained: a model with the loss of a batch of examples, saved as `rank` (and `prepare`) load it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from qilin_tasks.errors import SettingError
from qilin_tasks.hub_reach import reach_hub
from qilin_tasks.retrieval.encoders import devices, load_failed
from qilin_tasks.sources.qilin import Note
from qilin_tasks.systems.bert_cross import joined
from qilin_tasks.systems.examples import Example
from qilin_tasks.systems.processes import by_shares
from qilin_tasks.systems.recipe import Recipe


class Trained(Protocol):
    """A model in training; `module` holds its weights."""

    module: Any

    def __init__(self, model: str, recipe: Recipe, *, device: str) -> None: ...

    def loss(self, examples: Sequence[Example], notes: Mapping[int, Note]) -> Any:
        """A scalar tensor with gradients."""

    def save(self, folder: Path) -> None:
        """Writes the model with its tokenizer."""


def _load(model: str, kind: str, recipe: Recipe, device: str, **options: Any) -> tuple[Any, Any, Any]:
    """(module, the same over all GPUs, tokenizer)."""
    reach_hub(model)
    try:
        import torch
        import transformers

        module = getattr(transformers, kind).from_pretrained(model, **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        found = devices(device)
        module.to(found[0])
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        raise load_failed(model, error) from error
    longest = getattr(module.config, "max_position_embeddings", None)
    if longest is not None and recipe.max_length > longest:
        raise SettingError(
            f"--max-length {recipe.max_length}: the model {model!r} takes {longest} tokens at most; pass that or less"
        )
    if recipe.gradient_checkpointing:
        module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    spread = (
        torch.nn.DataParallel(module, device_ids=[torch.device(one) for one in found]) if len(found) > 1 else module
    )
    return module, spread, tokenizer


class BiTraining:
    """The clicked note above the others of its request and above every note of the batch's other requests."""

    def __init__(self, model: str, recipe: Recipe, *, device: str) -> None:
        self.module, self._spread, self._tokenizer = _load(model, "AutoModel", recipe, device)
        self._recipe = recipe

    def _encode(self, texts: Sequence[str]) -> Any:
        batch = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._recipe.max_length, return_tensors="pt"
        ).to(self.module.device)
        return by_shares(batch, self._vectors)

    def _vectors(self, batch: Mapping[str, Any]) -> Any:
        hidden = self._spread(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)

    def loss(self, examples: Sequence[Example], notes: Mapping[int, Note]) -> Any:
        import torch

        queries = self._encode([example.query for example in examples])
        texts = [notes[note].text for example in examples for note in (example.clicked, *example.others)]
        scores = queries @ self._encode(texts).T
        if self._recipe.scale == "root":
            scores = scores / queries.shape[1] ** 0.5
        wanted = torch.arange(len(examples), device=scores.device) * (1 + self._recipe.negatives)
        return torch.nn.functional.cross_entropy(scores, wanted)

    def save(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer, models

        # sentence-transformers' files hold pooling and similarity too; transformers reads the same folder.
        plain = folder.with_name(f"{folder.name}.plain")
        self.module.save_pretrained(plain)
        self._tokenizer.save_pretrained(plain)
        word = models.Transformer(str(plain), max_seq_length=self._recipe.max_length)
        pooling = models.Pooling(word.get_embedding_dimension(), pooling_mode="mean")
        SentenceTransformer(modules=[word, pooling], similarity_fn_name="dot").save_pretrained(str(folder))


class CrossTraining:
    """Each note for itself: clicked or not, by binary cross entropy."""

    def __init__(self, model: str, recipe: Recipe, *, device: str) -> None:
        self.module, self._spread, self._tokenizer = _load(
            model, "AutoModelForSequenceClassification", recipe, device, num_labels=1
        )
        self._recipe = recipe

    def loss(self, examples: Sequence[Example], notes: Mapping[int, Note]) -> Any:
        import torch

        pairs = [
            joined(example.query, notes[note], self._recipe.input)
            for example in examples
            for note in (example.clicked, *example.others)
        ]
        columns = [list(column) for column in zip(*pairs, strict=True)]
        batch = self._tokenizer(
            *columns, padding=True, truncation=True, max_length=self._recipe.max_length, return_tensors="pt"
        ).to(self.module.device)
        logits = by_shares(batch, lambda share: self._spread(**share).logits[:, 0])
        labels = torch.zeros_like(logits)
        labels[:: 1 + self._recipe.negatives] = 1.0
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)

    def save(self, folder: Path) -> None:
        self.module.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)


#: By the name of `--system`.
TRAINED: dict[str, type[Trained]] = {"bert-bi": BiTraining, "bert-cross": CrossTraining}
