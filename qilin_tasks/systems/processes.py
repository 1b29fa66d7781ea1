"""Training by several processes (`torchrun`): each computes a share of every batch, and all take the same step.

What the shares give is put together in every process, so that the loss is that of the whole batch (a bi-encoder's
negatives are the whole batch's). A process's gradients are those of its share; summed, they are the batch's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qilin_tasks.errors import SettingError


def started() -> tuple[int, int]:
    """(this process's number, how many there are), as torchrun tells them; (0, 1) without it."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def together(device: str) -> Iterator[str]:
    """Joins the processes that were started for a training; the device of this one.

    SettingError for a device that they can't share.
    """
    import torch

    rank, count = started()
    if count == 1:
        yield device
        return
    if device not in ("auto", "cpu"):
        raise SettingError(f"--device {device!r}: with {count} processes choose auto (a GPU each, else the CPU) or cpu")
    local, gpus = int(os.environ.get("LOCAL_RANK", rank)), torch.cuda.device_count()
    on_gpus = device == "auto" and gpus > 0
    if on_gpus and local >= gpus:
        raise SettingError(
            f"process {local} has no GPU: there are {gpus}; start {gpus} processes, or pass --device cpu"
        )
    chosen = f"cuda:{local}" if on_gpus else "cpu"
    if on_gpus:
        torch.cuda.set_device(local)
    torch.distributed.init_process_group("nccl" if on_gpus else "gloo")
    try:
        yield chosen
    finally:
        torch.distributed.destroy_process_group()


def first_s(make: Callable[[], str]) -> str:
    """What the first process makes, in all of them; the others wait for it."""
    import torch

    rank, count = started()
    made = [make() if rank == 0 else ""]
    if count > 1:
        torch.distributed.broadcast_object_list(made)
    return made[0]


def by_shares(batch: Mapping[str, Any], compute: Callable[[Mapping[str, Any]], Any]) -> Any:
    """`compute` of a batch of tensors (n, …): (n, …) in every process, with gradients through its own share."""
    import torch

    rank, count = started()
    if count == 1:
        return compute(batch)
    rows = len(next(iter(batch.values())))
    each = math.ceil(rows / count)
    # All shares are of one size: the last rows stand for what is missing, and are cut off again.
    mine = torch.arange(rank * each, (rank + 1) * each).clamp(max=rows - 1)
    own = compute({name: values[mine.to(values.device)] for name, values in batch.items()}).contiguous()
    parts = [torch.empty_like(own) for _ in range(count)]
    torch.distributed.all_gather(parts, own.detach())
    parts[rank] = own
    return torch.cat(parts)[:rows]


def sum_gradients(parameters: Iterable[Any]) -> None:
    """The gradients of all shares, in every process."""
    import torch

    if started()[1] == 1:
        return
    for parameter in parameters:
        if parameter.grad is not None:
            torch.distributed.all_reduce(parameter.grad)
