"""Greedy matching of BERTScore for many pairs: texts by length, each encoded once, pairs matched as soon as possible.

A pair is due when its longer text has been encoded. Until then only the shorter one's vectors are kept, in main memory,
so that the accelerator holds a single batch.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

    from qilin_tasks.metrics.bertscore_model import Encoder

logger = logging.getLogger(__name__)

Ids = tuple[int, ...]

_SHOW_PROGRESS_FROM = 512


def coverage(encoder: Encoder, pairs: Iterable[tuple[Ids, Ids]], *, batch_size: int) -> dict[tuple[Ids, Ids], float]:
    """For each pair in both directions (a, b): the mean over a's counted tokens of the best cosine with a token of b.

    Precision of a pair is that of (hypothesis, reference), recall that of (reference, hypothesis). Texts are token ids,
    none of them empty. Values are at most 1.
    """
    from tqdm import tqdm

    ordered = sorted({(min(pair, key=_by_length), max(pair, key=_by_length)) for pair in pairs})
    due: dict[Ids, list[Ids]] = defaultdict(list)
    for shorter, longer in ordered:
        due[longer].append(shorter)
    pending = Counter(shorter for shorter, _ in ordered)
    texts = sorted({*due, *pending}, key=_by_length)
    kept: dict[Ids, torch.Tensor] = {}
    found: dict[tuple[Ids, Ids], float] = {}
    with tqdm(total=len(texts), desc="BERTScore", unit="text", disable=len(texts) < _SHOW_PROGRESS_FROM) as progress:
        for start, vectors in encoder.forward_in_batches(texts, batch_size=batch_size):
            batch = texts[start : start + len(vectors)]
            for row, ids in enumerate(batch):
                if pending[ids]:
                    kept[ids] = vectors[row, : len(ids)].to("cpu", copy=True)
            jobs = [(row, shorter) for row, longer in enumerate(batch) for shorter in due.get(longer, ())]
            jobs.sort(key=lambda job: len(job[1]))
            for at in range(0, len(jobs), batch_size):
                rows, shorter_texts = zip(*jobs[at : at + batch_size], strict=True)
                longer_texts = [batch[row] for row in rows]
                longer_vectors = vectors[list(rows)]
                shorter_vectors = [kept[ids] for ids in shorter_texts]
                values = _match(encoder, longer_texts, longer_vectors, shorter_texts, shorter_vectors)
                for longer, shorter, (of_longer, of_shorter) in zip(longer_texts, shorter_texts, values, strict=True):
                    found[longer, shorter] = of_longer
                    found[shorter, longer] = of_shorter
            for _, shorter in jobs:
                pending[shorter] -= 1
                if not pending[shorter]:
                    kept.pop(shorter, None)
            progress.update(len(batch))
    return found


def _by_length(ids: Ids) -> tuple[int, Ids]:
    """Length first, then the ids themselves: the batches don't depend on the order of the input."""
    return len(ids), ids


def _match(
    encoder: Encoder,
    longer_texts: Sequence[Ids],
    longer: torch.Tensor,
    shorter_texts: Sequence[Ids],
    shorter: Sequence[torch.Tensor],
) -> list[tuple[float, float]]:
    """(coverage of the longer text, of the shorter one) of each pair, on the device of `longer` or else on the CPU."""
    from torch.nn.utils.rnn import pad_sequence

    from qilin_tasks.metrics.bertscore_model import is_out_of_memory

    padded = pad_sequence(list(shorter), batch_first=True)
    weights = [
        _padded_weights(encoder, texts, width)
        for texts, width in ((longer_texts, longer.shape[1]), (shorter_texts, padded.shape[1]))
    ]
    lengths = [np.array([len(ids) for ids in texts]) for texts in (longer_texts, shorter_texts)]
    try:
        return _best_matches(longer, padded, weights, lengths)
    except RuntimeError as error:
        if not is_out_of_memory(error) or longer.device.type == "cpu":
            raise
    logger.warning("BERTScore: no memory left on %s, matching on the CPU", longer.device)
    return _best_matches(longer.cpu(), padded, weights, lengths)


def _padded_weights(encoder: Encoder, texts: Sequence[Ids], width: int) -> np.ndarray:
    """Weight of each token in its text's mean: rows sum to 1, and 0 stands for special tokens and padding."""
    weights = np.zeros((len(texts), width), dtype=np.float32)
    for row, ids in enumerate(texts):
        weights[row, : len(ids)] = encoder.counted(ids)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _best_matches(
    longer: torch.Tensor, shorter: torch.Tensor, weights: Sequence[np.ndarray], lengths: Sequence[np.ndarray]
) -> list[tuple[float, float]]:
    import torch

    from qilin_tasks.metrics.bertscore_model import full_precision

    def on_device(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(longer.device)

    with torch.inference_mode(), full_precision():
        similarity = torch.bmm(longer, shorter.to(longer.device).transpose(1, 2))
        padding = [
            on_device(np.arange(width) >= length[:, None])
            for width, length in zip(similarity.shape[1:], lengths, strict=True)
        ]
        best_of_longer = similarity.masked_fill(padding[1][:, None, :], -1.0).amax(dim=2)
        best_of_shorter = similarity.masked_fill(padding[0][:, :, None], -1.0).amax(dim=1)
        means = [
            (best * on_device(weight)).sum(dim=1).clamp(max=1.0).tolist()
            for best, weight in zip((best_of_longer, best_of_shorter), weights, strict=True)
        ]
    return list(zip(*means, strict=True))
