"""Fine-tuning of a bi-encoder on clicks: the paper's BERT_bi with sentence-transformers' trainer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qilin_tasks.errors import DataError, SettingError
from qilin_tasks.files import UNFINISHED, put_folder
from qilin_tasks.retrieval.encoders import _failed


@dataclass(frozen=True)
class Triplet:
    """A query, a note that was clicked for it, and one that was shown and not clicked."""

    query: str
    clicked: int
    skipped: int


def triplets(rows: Iterable[Mapping[str, Any]], *, per_query: int, seed: int) -> list[Triplet]:
    """Clicked against exposed-not-clicked notes of each row, at most `per_query` pairs of a row, drawn with the seed.

    Rows need `query` and `search_result_details_with_idx`; rows without both kinds of note, or a query, give nothing.
    """
    if per_query < 1:
        raise SettingError(f"pairs per query {per_query}: choose a number from 1")
    generator = random.Random(seed)  # noqa: S311 (a sample, not a secret)
    found: list[Triplet] = []
    for row in rows:
        shown = row["search_result_details_with_idx"] or []
        clicked = list(dict.fromkeys(note["note_idx"] for note in shown if (note.get("click") or 0) > 0))
        skipped = list(dict.fromkeys(note["note_idx"] for note in shown if note["note_idx"] not in clicked))
        pairs = [(good, bad) for good in clicked for bad in skipped]
        if not pairs or not (row["query"] or "").strip():
            continue
        chosen = generator.sample(pairs, min(per_query, len(pairs)))
        found += [Triplet(row["query"], good, bad) for good, bad in chosen]
    if not found:
        raise DataError("no row has both a clicked and a skipped note: there is nothing to train on")
    return found


def train_biencoder(
    pairs: Sequence[Triplet],
    texts: Callable[[Iterable[int]], Mapping[int, str]],
    *,
    model: str,
    out: Path,
    epochs: float = 1,
    steps: int = -1,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    max_length: int = 256,
    seed: int = 0,
) -> Path:
    """Fine-tunes `model` (mean pooling, dot product) and saves it in the folder `out`, whole or not at all.

    The loss ranks the clicked note above the skipped one and above the other queries' notes of the batch. `steps`
    above 0 stops there. DependencyError where the model can't be loaded.
    """
    from datasets import Dataset

    if out.exists():
        raise SettingError(f"--out {str(out)!r}: is there already; choose another folder")
    try:
        from sentence_transformers import (
            SentenceTransformer,
            SentenceTransformerTrainer,
            SentenceTransformerTrainingArguments,
            models,
            util,
        )
        from sentence_transformers.losses import MultipleNegativesRankingLoss

        word = models.Transformer(model, max_seq_length=max_length)
    except (ImportError, OSError, ValueError) as error:
        raise _failed(model, error) from error
    encoder = SentenceTransformer(
        modules=[word, models.Pooling(word.get_embedding_dimension(), pooling_mode="mean")], similarity_fn_name="dot"
    )
    held = texts({note for pair in pairs for note in (pair.clicked, pair.skipped)})
    data = Dataset.from_dict(
        {
            "anchor": [pair.query for pair in pairs],
            "positive": [held[pair.clicked] for pair in pairs],
            "negative": [held[pair.skipped] for pair in pairs],
        }
    )
    made = out.with_name(f"{UNFINISHED}{out.name}")
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(out.with_name(f".{out.name}.checkpoints")),
        num_train_epochs=epochs,
        max_steps=steps,
        per_device_train_batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        report_to="none",
        save_strategy="no",
        disable_tqdm=False,
    )
    # Dot products of mean-pooled BERT vectors are large: without a scale the softmax would be all or nothing.
    loss = MultipleNegativesRankingLoss(
        encoder, scale=1 / encoder.get_embedding_dimension() ** 0.5, similarity_fct=util.dot_score
    )
    SentenceTransformerTrainer(model=encoder, args=arguments, train_dataset=data, loss=loss).train()
    encoder.save_pretrained(str(made))
    put_folder(made, out)
    return out
